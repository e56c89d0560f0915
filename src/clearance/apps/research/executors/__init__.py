"""Executors: where the steps of a cleared plan are carried out, on this machine or on a cluster.

jobs          what every executor is given, and what it gives back
step_folder   the complete outputs of a step, and which job they belong to
local         a process of its own for each step, with limits; guard is the process that holds it to them
argo          Argo Workflows; argo_client its HTTP API, argo_workflow what is created there, argo_outputs
              what it gives
argo_step     what runs a step inside a pod
argo_gate     a gate in the middle of a workflow, which only a signed clearance opens
"""
