# SPDX-License-Identifier: Apache-2.0
"""A service: threads, tasks, futures."""

import asyncio
import concurrent.futures
import pickle

import numpy as np
import pytest

import toto_cpp
from conftest import NANO1


@pytest.fixture(scope="module")
def service(nano):
    with toto_cpp.Service(nano) as service:
        yield service


def waves(count):
    return [np.sin(np.arange(200 + i) / (4 + i)).astype(np.float32) for i in range(count)]


def test_the_bits_are_those_of_the_model(nano, service):
    inputs = waves(12)
    futures = [service.submit(v, 20 + i, [0.1, 0.9], id=f"x{i}", seed=3) for i, v in enumerate(inputs)]
    for i, future in enumerate(futures):
        found = future.result()
        alone = nano.forecast(inputs[i], 20 + i, [0.1, 0.9], ids=f"x{i}", seed=3)
        np.testing.assert_array_equal(found.mean, alone.mean)
        np.testing.assert_array_equal(found.quantiles, alone.quantiles)
        assert found.id == f"x{i}" and future.compute_seconds > 0
    assert service.forecast(np.stack(inputs[:1] * 2), 4).mean.shape == (2, 4)
    assert [f.mean.shape for f in service.map(inputs[:3], 7)] == [(7,)] * 3


def test_await(nano, service):
    inputs = waves(8)

    async def ask():
        return await asyncio.gather(*(service.submit(v, 9) for v in inputs))

    for found, values in zip(asyncio.run(ask()), inputs):
        np.testing.assert_array_equal(found.mean, nano.forecast(values, 9).mean)


def test_a_cancelled_task_cancels_its_request(nano1):
    with toto_cpp.Service(nano1) as service:  # decodes for seconds, where the default forecasts in one pass
        cancel_a_task(service)


def cancel_a_task(service):
    async def ask():
        task = asyncio.ensure_future(asyncio.wait_for(service.submit(waves(1)[0], 3000, num_samples=512), 0.01))
        with pytest.raises(asyncio.TimeoutError):
            await task

    before = service.counters["cancelled"]
    asyncio.run(ask())
    assert service.forecast(waves(1)[0], 4).mean.shape == (4,)  # waits until the device is free again
    assert service.counters["cancelled"] == before + 1


def test_threads(nano, service):
    inputs = waves(32)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda v: service.forecast(v, 5).mean, inputs))
    np.testing.assert_array_equal(got, [nano.forecast(v, 5).mean for v in inputs])
    counters = service.counters
    assert counters["completed"] >= 32 and counters["batches"] <= counters["completed"]


def test_callbacks_and_errors(service):
    seen = []
    future = service.submit(waves(1)[0], 4)
    future.add_done_callback(lambda f: seen.append(f.result().horizon))
    concurrent.futures.wait([future], timeout=10)
    future.result()
    wrong = service.submit(waves(1)[0], 0)
    assert isinstance(wrong.exception(), toto_cpp.UsageError) and wrong.exception().code == "invalid_horizon"
    with pytest.raises(toto_cpp.DataError, match="not_finite"):
        service.submit([1.0, float("inf")], 4).result()
    with pytest.raises(toto_cpp.UsageError, match="invalid_input"):
        service.submit([waves(1)[0], waves(1)[0]], 4)
    with pytest.raises(toto_cpp.DeadlineError) as caught:
        service.submit(waves(1)[0], 4, timeout=0).result()
    assert isinstance(caught.value, TimeoutError)
    assert seen == [4]


def test_limits_draining_and_closing(nano1):  # which decodes: the blocker takes a while
    service = toto_cpp.Service(nano1, max_queue=1)
    blocker = service.submit(waves(1)[0], 2000, num_samples=64)
    waiting = [service.submit(v, 4) for v in waves(6)]
    refused = [f for f in waiting if isinstance(f.exception(), toto_cpp.QueueFullError)]
    assert refused and refused[0].exception().code == "queue_full"
    assert blocker.result().horizon == 2000 and service.drain(60)
    assert service.submit(waves(1)[0], 4).exception().code == "draining"
    service.close()
    service.close()
    with pytest.raises(toto_cpp.UsageError, match="closed"):
        service.submit(waves(1)[0], 4)
    assert pickle.loads(pickle.dumps(blocker.result())).horizon == 2000


def test_an_open_service_does_not_keep_the_process(run_python):
    out = run_python(
        f"""
import numpy as np, toto_cpp
service = toto_cpp.Service(toto_cpp.load({str(NANO1)!r}))
pending = [service.submit(np.ones(4096), 3000, num_samples=256) for _ in range(20)]
print("end")
""",
        timeout=60,
    )
    assert out == "end\n"


def test_in_a_forked_process(run_python):
    out = run_python(
        """
import os, numpy as np, toto_cpp
service = toto_cpp.Service()
service.forecast(np.ones(64), 4)
if os.fork() == 0:
    try:
        service.forecast(np.ones(64), 4)
    except toto_cpp.UsageError as error:
        print(error.code, toto_cpp.Service(service.model).forecast(np.ones(64), 4).horizon, flush=True)
else:
    os.wait()
"""
    )
    assert out == "forked 4\n"
