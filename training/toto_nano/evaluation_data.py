# SPDX-License-Identifier: Apache-2.0
"""The public series on which the model is judged; none of them is ever trained on.

All come inside packages on PyPI. The list was fixed before the first model was evaluated. Series
of the split "dev" may be looked at while the generator is being improved; "test" may not.
"""

import dataclasses
import gzip
import importlib.resources
import io
import tarfile

import numpy as np
import pandas as pd

# interval: (pandas frequency, season in steps, horizon in steps)
INTERVALS = {
    "yearly": ("YS", 1, 6),
    "quarterly": ("QS", 4, 8),
    "monthly": ("MS", 12, 18),
    "weekly": ("7D", 52, 13),
    "daily": ("D", 7, 14),
    "business": ("B", 5, 14),
    "hourly": ("h", 24, 48),
    "half-hourly": ("30min", 48, 48),
    "5 minutes": ("5min", 288, 48),
}


@dataclasses.dataclass
class Series:
    name: str
    domain: str
    interval: str
    source: str
    split: str
    values: np.ndarray  # NaN where missing
    start: str

    @property
    def season(self):
        return INTERVALS[self.interval][1]

    @property
    def horizon(self):
        return INTERVALS[self.interval][2]

    def times(self):
        frequency = INTERVALS[self.interval][0]
        return pd.date_range(self.start, periods=len(self.values), freq=frequency)


def file_of(package, *parts):
    return importlib.resources.files(package).joinpath(*parts)


def r_table(path):
    raw = file_of("pydataset", "resources.tar.gz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return pd.read_csv(tar.extractfile("resources/rdata/csv/" + path), index_col=0)


def bokeh(name):
    raw = file_of("bokeh_sampledata", "_data", name).read_bytes()
    return io.BytesIO(gzip.decompress(raw) if name.endswith(".gz") else raw)


def vega(name):
    return file_of("vega_datasets", "_data", name)


def river(*parts):
    return file_of("river", *parts)


def regular(values, frequency, how="mean"):
    """A column with a time index on a regular grid, NaN where there is nothing."""
    grid = values.resample(frequency)
    grid = getattr(grid, how)()
    return grid.to_numpy(float), str(grid.index[0])


def r_series():
    """(name, domain, interval, table, column, start, split)"""
    rows = [
        ("air_passengers", "transport", "monthly", "datasets/AirPassengers", -1, "1949-01-01", "test"),
        ("nottingham_temperature", "climate", "monthly", "datasets/nottem", -1, "1920-01-01", "test"),
        ("uk_driver_deaths", "safety", "monthly", "datasets/UKDriverDeaths", -1, "1969-01-01", "test"),
        ("us_savings_rate", "economics", "monthly", "ggplot2/economics", "psavert", "1967-07-01", "test"),
        ("sunspots_monthly", "astronomy", "monthly", "datasets/sunspot.month", -1, "1749-01-01", "test"),
        ("manaus_river", "hydrology", "monthly", "boot/manaus", -1, "1903-01-01", "test"),
        ("uk_gas", "energy", "quarterly", "datasets/UKgas", -1, "1960-01-01", "test"),
        ("johnson_johnson", "business", "quarterly", "datasets/JohnsonJohnson", -1, "1960-01-01", "test"),
        ("lynx", "ecology", "yearly", "datasets/lynx", -1, "1821-01-01", "test"),
        ("lake_huron", "hydrology", "yearly", "datasets/LakeHuron", -1, "1875-01-01", "test"),
        ("nox_emissions", "environment", "hourly", "robustbase/NOxEmissions", "LNOx", "2001-01-01", "test"),
        ("us_unemployed", "economics", "monthly", "ggplot2/economics", "unemploy", "1967-07-01", "dev"),
        ("us_accidental_deaths", "safety", "monthly", "datasets/USAccDeaths", -1, "1973-01-01", "dev"),
        ("australian_residents", "demography", "quarterly", "datasets/austres", -1, "1971-04-01", "dev"),
        ("us_approval", "politics", "quarterly", "datasets/presidents", -1, "1945-01-01", "dev"),
        ("new_haven_temperature", "climate", "yearly", "datasets/nhtemp", -1, "1912-01-01", "dev"),
        ("treering", "climate", "yearly", "datasets/treering", -1, "1700-01-01", "dev"),
        ("swiss_nox", "environment", "daily", "robustbase/ambientNOxCH", "ba", "2004-01-01", "dev"),
    ]  # fmt: skip
    for name, domain, interval, path, column, start, split in rows:
        table = r_table(path + ".csv")
        values = table.iloc[:, column] if column == -1 else table[column]
        if name == "treering":
            values = values[-300:]
        yield Series(name, domain, interval, "pydataset", split, values.to_numpy(float), start)


def statsmodels_series():
    from statsmodels.datasets import co2, elec_equip, elnino, macrodata, nile, sunspots

    def make(name, domain, interval, values, start):
        return Series(name, domain, interval, "statsmodels", "test", np.asarray(values, float), start)

    gdp = macrodata.load_pandas().data
    table = elnino.load_pandas().data
    weekly = co2.load_pandas().data["co2"]
    equipment = elec_equip.load_pandas().data
    yield make("us_real_gdp", "economics", "quarterly", gdp["realgdp"], "1959-01-01")
    yield make("us_inflation", "economics", "quarterly", gdp["infl"], "1959-01-01")
    yield make("nile", "hydrology", "yearly", nile.load_pandas().data["volume"], "1871-01-01")
    activity = sunspots.load_pandas().data["SUNACTIVITY"]
    yield make("sunspots_yearly", "astronomy", "yearly", activity, "1700-01-01")
    sea = table.drop(columns="YEAR").to_numpy(float).ravel()
    yield make("el_nino_sea_temperature", "climate", "monthly", sea, "1950-01-01")
    values = equipment.iloc[:, -1]
    yield make("electrical_equipment", "industry", "monthly", values, "1996-01-01")
    yield make("mauna_loa_co2", "climate", "weekly", weekly, str(weekly.index[0]))


def bokeh_series():
    def make(name, domain, interval, values, start, split="test"):
        return Series(name, domain, interval, "bokeh_sampledata", split, np.asarray(values, float), start)

    table = pd.read_csv(bokeh("unemployment1948.csv"), index_col=0).iloc[:, :12]
    yield make("us_unemployment", "economics", "monthly", table.to_numpy(float).ravel(), "1948-01-01")
    table = pd.read_csv(bokeh("us_marriages_divorces.csv"))
    yield make("us_marriages", "demography", "yearly", table["Marriages_per_1000"], "1867-01-01")
    stamps = pd.to_datetime(bokeh("commits.txt.gz").read().decode().split("\n")[:-1], utc=True, format="mixed")
    ones = pd.Series(1.0, index=stamps.tz_localize(None)).sort_index()
    yield make("bokeh_commits", "software", "weekly", *regular(ones, "7D", "sum"))
    stocks = pd.read_csv(bokeh("stocks.csv.gz"), parse_dates=["Date"])
    for ticker, part in stocks.groupby("Ticker"):
        split = "dev" if ticker == "FB" else "test"
        close = part.sort_values("Date")["Adj Close"]
        name = f"stock_{ticker.lower()}"
        yield make(name, "market", "business", close, str(part["Date"].min()), split)
    table = pd.read_csv(bokeh("sea_surface_temperature.csv.gz"), parse_dates=[0], index_col=0)
    sea = table.iloc[:, 0].tz_localize(None)
    yield make("sea_surface_temperature", "climate", "half-hourly", *regular(sea, "30min"))
    table = pd.read_csv(bokeh("CGM.csv.gz"), parse_dates=["datetime"], index_col="datetime")
    glucose = pd.to_numeric(table["glucose"], errors="coerce").sort_index()["2010-05-01":"2010-06-15"]
    yield make("glucose", "medicine", "5 minutes", *regular(glucose, "5min"))
    table = pd.read_csv(bokeh("lincoln_weather.csv"))
    yield make("lincoln_maximum", "climate", "daily", table["TMAX"], "2016-01-01", "dev")


def vega_series():
    def make(name, domain, interval, values, start, split="test"):
        return Series(name, domain, interval, "vega_datasets", split, np.asarray(values, float), start)

    jobs = pd.read_csv(vega("us-employment.csv"))
    yield make("us_hospitality_jobs", "economics", "monthly", jobs["leisure_and_hospitality"], "2006-01-01")
    yield make("us_construction_jobs", "economics", "monthly", jobs["construction"], "2006-01-01", "dev")
    weather = pd.read_csv(vega("seattle-weather.csv"))
    yield make("seattle_maximum", "climate", "daily", weather["temp_max"], "2012-01-01")
    yield make("seattle_wind", "climate", "daily", weather["wind"], "2012-01-01")
    for name, split in (("seattle", "test"), ("sf", "dev")):
        table = pd.read_csv(vega(f"{name}-temps.csv"), parse_dates=["date"], index_col="date")
        yield make(f"{name}_temperature", "climate", "hourly", *regular(table["temp"], "h"), split)


def other_series():
    from pmdarima import datasets

    def make(name, domain, interval, values, start, source, split="test"):
        return Series(name, domain, interval, source, split, np.asarray(values, float), start)

    yield make("australian_beer", "retail", "quarterly", datasets.load_ausbeer(), "1956-01-01", "pmdarima")
    yield make("australian_wine", "retail", "monthly", datasets.load_wineind(), "1980-01-01", "pmdarima")
    yield make("england_electricity", "energy", "half-hourly", datasets.load_taylor(), "2000-06-05", "pmdarima")
    yield make("wool_yarn", "industry", "quarterly", datasets.load_woolyrnq(), "1965-01-01", "pmdarima", "dev")
    flow = pd.read_csv(river("datasets", "water-flow.csv"))
    stamps = pd.to_datetime(flow.iloc[:, 0], utc=True).dt.tz_localize(None)
    flow = pd.Series(flow.iloc[:, 1].to_numpy(float), index=stamps)
    yield make("water_flow", "hydrology", "hourly", *regular(flow, "h"), "river")
    raw = gzip.decompress(river("datasets", "trump_approval.csv.gz").read_bytes())
    approval = pd.read_csv(io.BytesIO(raw))["five_thirty_eight"]
    yield make("president_approval", "politics", "daily", approval, "2017-01-23", "river")
    oil = pd.read_csv(river("drift", "datasets", "brent_crude_oil.csv"))["DPB"]
    yield make("brent_oil", "market", "business", oil, "1987-05-20", "river")


def load(split: str) -> list[Series]:
    """Every series of the split ("test" or "dev"), in a fixed order, ends trimmed of NaN."""
    found = []
    for source in (r_series, statsmodels_series, bokeh_series, vega_series, other_series):
        for s in source():
            seen = np.flatnonzero(np.isfinite(s.values))
            if seen[0] > 0:
                s.start = str(s.times()[seen[0]])
            s.values = s.values[seen[0] : seen[-1] + 1]
            if s.split == split:
                found.append(s)
    return found
