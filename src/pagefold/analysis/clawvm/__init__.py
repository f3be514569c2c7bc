"""The literature's matrix (ClawVM, arXiv 2604.10352): seeded workloads, budgets and policies as sets of flags.

`workloads` makes what the agent does, before and apart from any policy; `policies` says what each policy may do;
`simulate` lets one meet the other and counts faults by the one observer; `matrix` runs and sums them; `picture` draws.
The paper's own generators are not public: definitions and orderings can be compared with it, absolute counts cannot.
"""
