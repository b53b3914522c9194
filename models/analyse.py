"""Find abnormal energy use in input/building_energy.csv; written for people to read."""

import os
import shutil

# Matplotlib wants a folder it can write to; the image's own holds a font list that is dear to make anew.
fonts = os.environ.get("MPLCONFIGDIR", "")
if os.path.isdir(fonts):
    shutil.copytree(fonts, "/tmp/matplotlib", dirs_exist_ok=True)
os.environ["MPLCONFIGDIR"] = "/tmp/matplotlib"

import matplotlib

matplotlib.use("Agg")
import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

HEATING_BELOW, COOLING_ABOVE = 15.0, 21.0  # degrees Celsius
MIN_Z, MIN_KWH = 6.0, 10.0  # an hour counts when it is this far out, by both measures
JOIN_HOURS = 14  # hours that lie this close together belong to one event
MIN_EVENT_KWH = 60.0  # below this an event is operating noise

data = pd.read_csv("input/building_energy.csv", dtype={"timestamp": str})
time = pd.to_datetime(data["timestamp"])
hour = time.dt.hour.to_numpy()
energy = data["energy_kwh"].to_numpy(float)
temp = data["outdoor_temp_c"].to_numpy(float)
drivers = np.column_stack(
    [np.ones(len(data)), np.maximum(HEATING_BELOW - temp, 0), np.maximum(temp - COOLING_ABOVE, 0)]
)


def expected_use(kind):
    """Expected use and its usual spread for each hour, by kind of day, hour and temperature.

    Least squares, three times over without the hours that lie far out, so that the
    abnormal hours do not teach the model what is normal.
    """
    expected, spread = np.zeros(len(data)), np.ones(len(data))
    for day in np.unique(kind):
        for h in range(24):
            here = np.flatnonzero((kind == day) & (hour == h))
            y = energy[here]
            x = drivers[here] * ((drivers[here] > 0.5).sum(axis=0) >= 15)  # a few warm nights prove no slope
            keep = np.abs(y - np.median(y)) <= 6 * 1.4826 * np.median(np.abs(y - np.median(y))) + 1
            for _ in range(3):
                weights, *_ = np.linalg.lstsq(x[keep], y[keep], rcond=None)
                rest = y - x @ weights
                sigma = max(1.4826 * np.median(np.abs(rest)), 1.0)
                keep = np.abs(rest) < 4 * sigma
            expected[here], spread[here] = x @ weights, sigma
    return expected, spread


kind = np.select([time.dt.dayofweek == 5, time.dt.dayofweek == 6], ["saturday", "closed"], "work")
expected, spread = expected_use(kind)

# A working day that runs like a Sunday from morning to evening is a holiday, not an anomaly.
as_closed = pd.Series(np.nan, index=data.index)
for h in range(24):
    closed, here = (kind == "closed") & (hour == h), hour == h
    weights, *_ = np.linalg.lstsq(drivers[closed], energy[closed], rcond=None)
    as_closed[here] = drivers[here] @ weights
office = (hour >= 8) & (hour < 18) & (kind == "work")
likeness = (np.abs(energy - as_closed) / as_closed)[office].groupby(time.dt.date[office]).median()
holidays = sorted(likeness.index[likeness < 0.15])
kind[time.dt.date.isin(holidays).to_numpy()] = "closed"
expected, spread = expected_use(kind)

difference = energy - expected
z = difference / spread
flagged = np.flatnonzero((np.abs(z) >= MIN_Z) & (np.abs(difference) >= MIN_KWH))

# Neighbours become events; small ones are dropped.
events = []
for index in flagged:
    if events and index - events[-1][-1] <= JOIN_HOURS:
        events[-1].append(index)
    else:
        events.append([index])
events = [np.array(e) for e in events if abs(difference[e].sum()) >= MIN_EVENT_KWH]


def explain(event):
    """A short name and a plausible cause, from times, values and temperature only."""
    first, last = time[event[0]], time[event[-1]]
    span = event[-1] - event[0] + 1
    over = difference[event]
    night = np.mean((hour[event] < 7) | (hour[event] >= 19))
    if np.median(energy[event]) < 0.1 * np.median(expected[event]):
        return "meter outage", (
            "The meter shows almost nothing while the hours before and after are ordinary. Even the base load is "
            "missing, so this looks like a fault of the meter or of its connection, not like saved energy."
        )
    if span >= 96:
        return "slow drift", (
            "Use rises above the expected value day after day and then returns to normal at once. With outdoor "
            f"temperatures of {temp[event].min():.0f} to {temp[event].max():.0f} C a cooling fault that was "
            "repaired, such as a refrigerant leak, is plausible."
        )
    if span <= 3:
        return "sudden spike", (
            "A very high load for a short time in the working day. A large machine, a test of equipment or a "
            "start of many devices at once is plausible; the temperature was unremarkable."
        )
    if first.dayofweek >= 5 and span >= 10 and last.dayofweek >= 5:
        return "busy weekend", (
            "The building ran like on a working day although the weekend profile is low. An event in the "
            "building or a wrong entry in the occupancy plan is plausible."
        )
    if night > 0.8:
        return "left on overnight", (
            "The load stays high through the night and falls back in the morning. Heating or ventilation that "
            f"was not turned down is plausible at {temp[event].mean():.0f} C outside."
        )
    return "sustained extreme load", (
        f"The load lies {over.mean():.0f} kWh per hour above the expected value for many hours in a row, more than "
        "occupancy or weather explain. A fault of electric heating or unplanned operation is plausible; if the "
        "building was closed, this needs a visit."
    )


rows, sections = [], []
for number, event in enumerate(events, 1):
    name, cause = explain(event)
    part = data.loc[event].assign(
        expected_kwh=expected[event].round(2),
        difference_kwh=difference[event].round(2),
        robust_z=z[event].round(1),
        event=number,
        kind=name,
    )
    rows.append(part)
    sections.append(
        f"## Event {number}: {name}\n\n"
        f"From {data['timestamp'][event[0]]} to {data['timestamp'][event[-1]]}, {len(event)} abnormal hours. "
        f"Measured {energy[event].sum():.0f} kWh, expected {expected[event].sum():.0f} kWh "
        f"({difference[event].sum():+.0f} kWh). {cause}\n"
    )

os.makedirs("output", exist_ok=True)
columns = list(data.columns) + ["expected_kwh", "difference_kwh", "robust_z", "event", "kind"]
table = pd.concat(rows) if rows else pd.DataFrame(columns=columns)
table.to_csv("output/anomalies.csv", index=False)

closed_days = ", ".join(str(day) for day in holidays) or "none"
with open("output/anomaly_report.md", "w", encoding="ascii") as report:
    report.write(
        f"# Abnormal energy use\n\n{len(events)} events with {len(table)} abnormal hours were found in "
        f"{len(data)} hourly readings from {data['timestamp'].iloc[0]} to {data['timestamp'].iloc[-1]}.\n\n"
        "## Method\n\nFor each kind of day and hour, the expected use is fitted to the outdoor temperature, with the "
        "far-out hours left out. An hour is abnormal when it differs from that by at least "
        f"{MIN_Z:.0f} times the usual spread and by at least {MIN_KWH:.0f} kWh. Hours that lie close together form "
        f"one event, and events below {MIN_EVENT_KWH:.0f} kWh are left out as noise. Working days that ran like a "
        f"Sunday are taken as holidays: {closed_days}.\n\n" + "\n".join(sections)
    )

# One overview of the year, and a closer look at each event.
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
closer = events[:6]
lines = 1 + (len(closer) + 2) // 3
figure = plt.figure(figsize=(13, 2.9 * lines), dpi=100)
grid = figure.add_gridspec(lines, 3, left=0.05, right=0.98, top=0.95, bottom=0.05, hspace=0.32, wspace=0.16)
year = figure.add_subplot(grid[0, :])
year.plot(time, energy, color="0.7", linewidth=0.5, label="measured")
year.scatter(time[table.index], energy[table.index], s=7, color="tab:red", zorder=3, label="abnormal")
for number, event in enumerate(events, 1):
    year.annotate(
        str(number), (time[event[len(event) // 2]], energy[event].max()), xytext=(0, 6),
        textcoords="offset points", ha="center", weight="bold",
    )
year.set(ylabel="kWh per hour", title=f"Hourly energy use: {len(events)} abnormal events", xlim=(time.iloc[0], time.iloc[-1]))
year.set_ylim(top=1.15 * energy.max())
year.xaxis.set_major_locator(mdates.MonthLocator())
year.xaxis.set_major_formatter(mdates.DateFormatter("%b"))
year.legend(loc="upper left", ncols=2, frameon=False)
for number, event in enumerate(closer, 1):
    panel = figure.add_subplot(grid[1 + (number - 1) // 3, (number - 1) % 3])
    near = slice(max(event[0] - 36, 0), event[-1] + 37)
    panel.plot(time[near], expected[near], color="tab:blue", linewidth=1, label="expected")
    panel.plot(time[near], energy[near], color="0.35", linewidth=1, label="measured")
    panel.scatter(time[event], energy[event], s=9, color="tab:red", zorder=3)
    panel.margins(y=0.12)
    panel.set_title(f"{number}: {rows[number - 1]['kind'].iloc[0]}")
    panel.xaxis.set_major_locator(mdates.DayLocator(interval=1 + (near.stop - near.start) // 150))
    panel.xaxis.set_major_formatter(mdates.DateFormatter("%d %b"))
    if number == 1:
        panel.legend(loc="upper right", frameon=False)
figure.savefig("output/energy_anomalies.png")

print(f"{len(events)} events, {len(table)} abnormal hours of {len(data)}")
for number, (event, part) in enumerate(zip(events, rows), 1):
    print(
        f"{number}. {data['timestamp'][event[0]]} to {data['timestamp'][event[-1]]}  {part['kind'].iloc[0]}: "
        f"{difference[event].sum():+.0f} kWh against expected"
    )
