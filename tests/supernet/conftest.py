"""The networks of this folder are small, so one thread is fastest."""

import pytest


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
