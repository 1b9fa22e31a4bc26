# SPDX-License-Identifier: Apache-2.0
# Tables at a level that float32 has no digits left for, as the page at / sends them.
import pytest
from conftest import request


def test_a_level_that_float32_has_no_digits_for(server):
    def post(level, query="", path="forecast"):
        rows = "\n".join(f"2026-01-{1 + h // 24:02d} {h % 24:02d}:00,{level + 3 * (h == 600)}.{100 + h * 7 % 24 * 25:03d}"
                         for h in range(700)).encode()
        answer = request("POST", f"{server.url}/ui/{path}?{query}", b"ds,y\n" + rows)
        assert answer.status == 200, answer.body
        return answer.json()

    high, low = post(100_000_000), post(0)
    (found,), (expected,) = high["series"][0]["variates"], low["series"][0]["variates"]
    for name in ("lower", "median", "upper", "last"):
        assert found[name] == pytest.approx([1e8 + x for x in expected[name]], abs=1e-5, rel=0), name
    assert found["lower"] < found["upper"] and found["last"][0] % 1 > 0
    assert any("float32" in warning for warning in high["read"]["warnings"])
    held, other = (post(level, "holdout=1")["series"][0]["holdout"] for level in (100_000_000, 0))
    assert held == pytest.approx(other, rel=1e-2)
    odd, same = (post(level, path="anomalies")["series"][0]["anomalies"] for level in (100_000_000, 0))
    assert [p["ds"] for p in odd] == [p["ds"] for p in same] != []
    assert [p["value"] for p in odd] == pytest.approx([1e8 + p["value"] for p in same], abs=1e-6, rel=0)
