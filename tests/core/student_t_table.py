#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/student_t/table.csv: Student's t at 50 digits, by mpmath 1.3.

    python3 tests/core/student_t_table.py > tests/data/student_t/table.csv

The table is for the doubles nearest to the decimals of DF and T. The tail is the regularised
incomplete beta function; for df above 10^6, where mpmath's hypergeometric sum gives up, it is the
integral of the density (the two agree to 25 digits at 10^6: checked below).
"""
import mpmath

mpmath.mp.dps = 50
DF = [2.0, 2.0000002, 2.1, 2.5, 3.0, 3.3, 4.0, 5.5, 7.3, 10.0, 13.7, 19.99, 29.0, 39.999, 40.0,
      55.5, 100.0, 1e3, 12345.6, 1e6, 1e8, 1e12]
T = [0.0, 1e-9, 1e-3, 0.1, 0.5, 1.0, 1.7, 2.5, 4.0, 6.0, 9.0, 20.0, 37.0, 100.0, 1e4, 1e8, 1e20,
     1e100]


def density(df, x):
    log_norm = (mpmath.loggamma((df + 1) / 2) - mpmath.loggamma(df / 2)
                - mpmath.log(mpmath.pi * df) / 2)
    return mpmath.exp(log_norm - (df + 1) / 2 * mpmath.log1p(x * x / df))


def tail_by_beta(df, x):
    return mpmath.betainc(df / 2, mpmath.mpf(1) / 2, 0, df / (df + x * x), regularized=True) / 2


def tail_by_integral(df, x):
    with mpmath.workdps(80):  # log-gamma of 10^12 loses a dozen digits
        width = 1 / (1 + x)
        points = [x + width * k for k in range(0, 81, 4)]
        peak = density(df, x)  # quad stops at an absolute error
        return peak * mpmath.quad(lambda s: density(df, s) / peak, points)


for at in (0, 2.5, 20, 37):
    check = [f(mpmath.mpf(10) ** 6, mpmath.mpf(at)) for f in (tail_by_beta, tail_by_integral)]
    assert abs(check[0] / check[1] - 1) < mpmath.mpf(10) ** -25, check

print("df,t,pdf,upper")
for df in map(mpmath.mpf, DF):
    for t in map(mpmath.mpf, T):
        pdf = density(df, t)
        if pdf < 1e-300:  # doubles lose digits near underflow
            continue
        upper = tail_by_beta(df, t) if df <= 10**6 else tail_by_integral(df, t)
        if upper > 1e-300:
            print(f"{float(df)!r},{float(t)!r},{mpmath.nstr(pdf, 20)},{mpmath.nstr(upper, 20)}")
