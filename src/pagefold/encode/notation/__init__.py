"""A denser way to write JSON, and the way back.

Quotes that nobody needs are left out; arrays of like objects become tables; what repeats is named once. Nothing else: a
reader who knows JSON reads it unaided, and `read` gives the same values, types, key order, number lexemes and duplicate
keys as `write` was given.

    $a=https://api.example.org/users           a string that others begin with
    {count:2,next:null,users:#1}               quotes left out, tables below
    #1 2 rows: id,name,kind=user,url=$a/{id}   a constant column, and one that follows from another
    17,Ada
    18,"Lovelace, A."
"""
