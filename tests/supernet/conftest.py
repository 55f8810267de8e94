"""This folder needs torch; its networks are small, so one thread is fastest."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (pip install 'binas[torch]')")


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
