"""Ctrl-C inside a solver of others ends the call at once, not when the solver likes to."""

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys, threading
from binas.search import BilinearObjective, Limit, SearchProblem, solve
from binas.search.solvers import Options, make_solver
from binas.space import load_space
from binas.testing.paper_example import paper_costs

space = load_space("imagenet-mbconv")
costs = paper_costs(space).costs
values = costs["latency"].values.map(lambda x: 0.1 * x)  # exactly proportional: not proven for minutes
problem = SearchProblem(space, BilinearObjective(70.0, values), costs, (Limit("latency", 45.0),))
solver = make_solver(sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests were started in the background
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    solver.solve(problem, Options(gap=0.0))
except KeyboardInterrupt:
    print("heard")
"""


@pytest.mark.parametrize("solver", ["milp", "miqcp"])
def test_ctrl_c_is_heard(solver):
    done = subprocess.run([sys.executable, "-c", SCRIPT, solver], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "heard\n"
