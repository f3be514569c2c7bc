"""A shorter notation for JSON, its writer and its reader.

Unneeded quotes are left out, arrays of similar objects become tables, and what repeats gets a name. A reader who knows
JSON needs no explanation. `read` returns the values that `write` got: types, key order, spelling of numbers and
duplicate keys included.

    $a=https://api.example.org/users           a string that others begin with
    {count:2,next:null,users:#1}               quotes left out, tables below
    #1 2 rows: id,name,kind=user,url=$a/{id}   a constant column, and one that follows from another
    17,Ada
    18,"Lovelace, A."
"""
