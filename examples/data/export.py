# SPDX-License-Identifier: Apache-2.0
"""Writes the example series to a folder: python export.py FOLDER (see README.md)."""
import csv, importlib.util, os, sys

folder = sys.argv[1]

def package(name):
    return importlib.util.find_spec(name).submodule_search_locations[0]

def write(name, header, rows):
    with open(os.path.join(folder, name), "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)

datasets = os.path.join(package("statsmodels"), "datasets")

sunspots = []
with open(os.path.join(datasets, "sunspots", "src", "sunspots_monthly.dat")) as file:
    for line in file:
        cells = line.split()
        if len(cells) >= 13 and cells[0].isdigit() and len(cells[0]) == 4:
            sunspots += [(f"{cells[0]}-{m:02}", cells[m]) for m in range(1, 13)]
write("sunspots.csv", ["month", "sunspots"], sunspots)

with open(os.path.join(datasets, "co2", "co2.csv"), newline="") as file:
    rows = [(f"{r['date'][:4]}-{r['date'][4:6]}-{r['date'][6:]}", r["co2"]) for r in csv.DictReader(file)]
write("co2.csv", ["date", "co2"], rows)

with open(os.path.join(datasets, "elnino", "elnino.csv"), newline="") as file:
    reader = csv.reader(file)
    months = next(reader)
    rows = [(f"{int(float(r[0]))}-{m:02}-01", r[m]) for r in reader for m in range(1, 13)]
write("elnino.csv", ["date", "sea_surface_temperature"], rows)

with open(os.path.join(package("vega_datasets"), "_data", "seattle-weather.csv"), newline="") as file:
    rows = [[r["date"].replace("/", "-"), r["precipitation"], r["temp_max"], r["temp_min"], r["wind"], r["weather"]]
            for r in csv.DictReader(file)]
write("seattle_weather.csv", ["date", "precipitation", "temp_max", "temp_min", "wind", "weather"], rows)
