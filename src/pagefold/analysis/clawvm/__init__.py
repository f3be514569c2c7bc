"""The fault matrix of the literature (ClawVM, arXiv 2604.10352): seeded workloads, budgets, and policies as flags.

`workloads` makes what the agent does, before and apart from any policy; `policies` says what each policy may do;
`simulate` runs one under the other and counts faults by the one observer; `matrix` runs them all and sums them up.
The paper's own generators are not public: definitions and orderings can be compared with it, absolute counts cannot.
"""
