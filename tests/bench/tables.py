# SPDX-License-Identifier: MIT
"""The figures as text."""

from figures import MIB

WHAT = {
    "pointer": "every reader has the address of the bytes",
    "read": "every reader has read them once",
    "gpu": "they are on every reader's GPU",
}


def size(nbytes):
    if nbytes >= MIB and not nbytes % MIB:
        return f"{nbytes // MIB} MiB"
    return f"{nbytes / 1024:g} KiB"


def number(value):
    """Three digits that mean something."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def spread(value):
    if value is None:
        return "-"
    return f"{number(value.value)} ({number(value.min)}-{number(value.max)})"


def table(head, rows):
    """Columns as wide as they need to be, the first one flush left."""
    rows = [list(map(str, row)) for row in rows]
    widths = [max(len(row[i]) for row in [head, *rows])
              for i in range(len(head))]
    for row in [head, *rows]:
        cells = [cell.ljust(width) if not i else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        yield "  ".join(cells).rstrip()


def machine_lines(machine):
    gpu = machine.get("gpu")
    yield f"{machine['cpu']}, {machine['cores_allowed']} of " \
        f"{machine['cores']} cores" \
        f"{', virtual machine' if machine['virtual_machine'] else ''}; " \
        f"L3 {machine['cache_l3']}; NUMA nodes {machine['numa_nodes']}"
    yield f"{machine['memory_kib'] // 1024} MiB memory, pages of " \
        f"{machine['page_bytes']} bytes, huge pages " \
        f"{machine.get('huge_pages', '-')}, of shared memory " \
        f"{machine.get('huge_pages_of_shared_memory', '-')}; " \
        f"{machine['kernel']}; libzmq {machine['libzmq']}; " \
        f"load before {machine['load_before']}"
    yield f"{gpu['count']} x {gpu['name']}, CUDA runtime {gpu['runtime']}, " \
        f"{gpu['driver'] or gpu['driver_api']}" if gpu \
        else f"no GPU: {machine['no_gpu']}"


def delivery(run, mode):
    """Part A: from the put until it has arrived, by contender and size."""
    head = ["", *(f"N={n}" for n in run.readers)]
    for nbytes in run.sizes:
        rows = []
        for name in run.names:
            values = [run.value("end_ms", name, n, nbytes, mode)
                      for n in run.readers]
            if any(values):
                rows.append([name, *map(spread, values)])
        if rows:
            yield f"A. {size(nbytes)}: {run.unit} from the put until " \
                f"{WHAT[mode]}"
            yield from table(head, rows)
            yield ""


def floors(run, mode):
    rows = []
    for name in run.names:
        values = [run.value("put_ms", name, 0, b, mode) for b in run.sizes]
        if any(values):
            rows.append([name, *map(spread, values)])
    if rows:
        yield f"Floors of the one copy, {run.unit}"
        yield from table(["", *map(size, run.sizes)], rows)
        for name in run.names:
            key = (name, 0, run.target_bytes, mode)
            if run.series.get(key, {}).get("about"):
                yield f"{name}: {run.series[key]['about']}"
        yield ""


def costs(run, mode):
    """Part B: what it costs both sides."""
    nbytes = run.target_bytes
    head = ["", "put", "source free", "writer CPU", "readers CPU",
            "faults writer", "faults readers", "copies a byte delivered"]
    rows = []
    for name in run.names:
        for n in run.readers:
            key = (name, n, nbytes, mode)
            if key not in run.series or run.contenders[name]["floor"]:
                continue
            values = [run.value(column, *key) for column in (
                "put_ms", "free_ms", "writer_cpu_ms", "readers_cpu_ms",
                "writer_faults", "readers_faults")]
            rows.append([f"{name} N={n}", *map(spread, values[:4]),
                         *(f"{v.value:.0f}" for v in values[4:]),
                         f"{run.copies(name, n, mode):g}"])
    if rows:
        yield f"B. {size(nbytes)}: what a broadcast costs, {run.unit}, " \
            f"mode {mode}"
        yield from table(head, rows)
        yield ""


def scaling(run, mode):
    """Part D: slopes."""
    rows = []
    for name in run.names:
        if run.contenders[name]["floor"]:
            continue
        fit = run.slope_readers("end_ms", name, run.target_bytes, mode)
        put = run.slope_readers("put_ms", name, run.target_bytes, mode)
        sizes = run.slope_bytes("end_ms", name, run.readers[-1], mode)
        if fit or sizes:
            rows.append([
                name,
                f"{fit[0]:+.2f} {fit[1]:+.3f} N" if fit else "-",
                f"{put[0]:+.2f} {put[1]:+.3f} N" if put else "-",
                f"{sizes[0]:+.2f} {sizes[1] * 100 * MIB:+.2f} for 100 MiB"
                if sizes else "-"])
    if rows:
        yield f"D. Least squares, {run.unit}, mode {mode}"
        yield from table(["", f"end, {size(run.target_bytes)}",
                          f"put, {size(run.target_bytes)}",
                          f"end, N={run.readers[-1]}"], rows)
        yield ""


def operations(ops):
    """Part C: what the machinery costs."""
    head = ["readers", *(f"{op} {q}" for op in ops.names
                         for q in ("p50", "p99")), "cycles/s", "ops/s"]
    rows = []
    for n in ops.readers:
        cells = [number(value / 1000) for op in ops.names
                 for value in (ops.quantile(n, op, .5),
                               ops.quantile(n, op, .99))]
        rows.append([n, *cells, f"{ops.cycles(n):.0f}",
                     f"{ops.rate(n):.0f}"])
    yield f"C. Operations of the {ops.engine} engine, {ops.unit}"
    yield from table(head, rows)
    idle = ops.record["idle_arena"]
    yield "An arena that carries nothing: " + ", ".join(
        f"{key.replace('_', ' ')} {value}" for key, value in idle.items())
    yield ""
    yield f"C. 200 MiB into a slot, {ops.unit_ms}"
    yield from table(
        ["", "put", "put, CPU", "view", "view, CPU"],
        [[which, *map(spread, ops.first_use(which, "put")),
          *map(spread, ops.first_use(which, "view"))]
         for which in ("first", "second")])
    yield ""


def messages(ratios):
    rows = [[f"N={key.rsplit('n', 1)[1]}", f"{v.min * 1000:.1f}",
             f"{v.max * 1000:.1f}", f"{v.value:.3f}"]
            for key, v in ratios.items() if key.startswith("message_beside")]
    if rows:
        yield "C. A message without a tensor, median us until all have it"
        yield from table(["", "beside an idle arena", "without", "ratio"],
                         rows)
        yield ""


def ratio_lines(ratios, nbytes):
    yield f"Ratios of medians at {size(nbytes)}, with the rounds' spread"
    yield from table(["", "ratio"], [
        [key, spread(value)] for key, value in ratios.items()
        if not key.startswith("message_beside")])
    yield ""


def target_lines(targets):
    yield "Targets"
    yield from table(["", "limit", "value", "verdict"], [
        [t["what"], t["limit"],
         "-" if t["value"] is None else f"{t['value']:.4g}",
         t["verdict"]] for t in targets])
