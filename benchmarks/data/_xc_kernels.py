"""Compiled inner loops of the XC reader; :mod:`benchmarks.data.xc` is the way in.

Each kernel works on one block of whole lines and frees the interpreter lock, so that plain
Python threads keep every core busy. A kernel never raises: it returns a code and the byte at
which it stopped, and the caller words the error.
"""

from __future__ import annotations

import numba
import numpy as np

OK = 0
BAD_LABEL = 1
LABEL_RANGE = 2
BAD_FEATURE = 3
FEATURE_RANGE = 4
BAD_VALUE = 5
BAD_END = 6
EMPTY_LINE = 7

_SPACE, _TAB, _NEWLINE, _RETURN = 32, 9, 10, 13
_COMMA, _COLON, _PLUS, _MINUS, _DOT = 44, 58, 43, 45, 46
_E = 101
_ID_LIMIT = np.uint64(2**31)
_EXACT = np.uint64(2**53)

# Each entry is the double nearest to its power of ten; the first 23 are exact.
_POWERS = np.array([float(f"1e{k}") for k in range(65)])


@numba.njit(cache=True, nogil=True)
def count(block: np.ndarray) -> tuple[int, int, int]:  # pragma: no cover - compiled
    """How many line ends, colons and commas a block has: upper bounds for its arrays."""
    lines = 0
    colons = 0
    commas = 0
    for byte in block:
        lines += byte == _NEWLINE
        colons += byte == _COLON
        commas += byte == _COMMA
    return lines, colons, commas


@numba.njit(cache=True, nogil=True, inline="always")
def _digit(byte):  # type: ignore[no-untyped-def]
    """The digit's value, or more than 9: unsigned, so that one comparison decides."""
    return np.uint64(byte) - np.uint64(48)


@numba.njit(cache=True, nogil=True)
def _integer(block, at):  # type: ignore[no-untyped-def]
    """An id at ``at``: its value (or -1) and the byte behind it; huge ids stop at the limit."""
    start = at
    value = np.uint64(0)
    digit = _digit(block[at])
    while digit <= 9:
        value = min(value, _ID_LIMIT) * np.uint64(10) + digit
        at += 1
        digit = _digit(block[at])
    return np.int64(-1) if at == start else np.int64(value), at


@numba.njit(cache=True, nogil=True)
def _number(block, at):  # type: ignore[no-untyped-def]
    """A decimal number at ``at``: value, byte behind it, and 0 exact, 1 undecided, 2 no number.

    The plain case, an optional sign and at most 18 digits around a point, is exact in double
    precision for m < 2^53 and m / 10^k with k <= 22 (Clinger 1990). The rest is _any_number's.
    """
    token = at
    negative = block[at] == _MINUS
    if negative or block[at] == _PLUS:
        at += 1
    start = at
    mantissa = np.uint64(0)
    digit = _digit(block[at])
    while digit <= 9:
        mantissa = mantissa * np.uint64(10) + digit
        at += 1
        digit = _digit(block[at])
    digits = at - start
    fraction = 0
    if block[at] == _DOT:
        at += 1
        start = at
        digit = _digit(block[at])
        while digit <= 9:
            mantissa = mantissa * np.uint64(10) + digit
            at += 1
            digit = _digit(block[at])
        fraction = at - start
        digits += fraction
    if digits == 0:
        return 0.0, at, 2
    if digits > 18 or mantissa >= _EXACT or (block[at] | 32) == _E:
        return _any_number(block, token)
    value = np.float64(mantissa) / _POWERS[fraction]
    return -value if negative else value, at, 0


@numba.njit(cache=True, nogil=True)
def _any_number(block, at):  # type: ignore[no-untyped-def]
    """As :func:`_number`, for any decimal number with or without an exponent.

    19 digits are kept; m * 10^e is then off by less than 2^-50 of itself, and if both ends of
    that interval round to one float32, so does the number. What is left over (about one number
    in 10^8) is undecided, and Python's own ``float`` decides.
    """
    negative = block[at] == _MINUS
    if negative or block[at] == _PLUS:
        at += 1
    mantissa = np.uint64(0)
    kept = 0
    exponent = 0
    dropped = False
    seen_dot = False
    while True:
        digit = _digit(block[at])
        if digit <= 9:
            if kept < 19:
                mantissa = mantissa * np.uint64(10) + digit
                # Leading zeros carry no precision, so they do not use up the 19 digits.
                kept += mantissa != 0
                exponent -= seen_dot
            else:
                dropped = True
                exponent += not seen_dot
        elif block[at] == _DOT and not seen_dot:
            seen_dot = True
        else:
            break
        at += 1
    if (block[at] | 32) == _E:
        at += 1
        down = block[at] == _MINUS
        if down or block[at] == _PLUS:
            at += 1
        power, behind = _integer(block, at)
        if behind == at:
            return 0.0, at, 2
        exponent += -power if down else power
        at = behind
    if mantissa == 0:
        return -0.0 if negative else 0.0, at, 0
    if exponent < -64 or exponent > 64:
        return 0.0, at, 1
    value = np.float64(mantissa)
    value = value * _POWERS[exponent] if exponent >= 0 else value / _POWERS[-exponent]
    if negative:
        value = -value
    if mantissa < _EXACT and not dropped and -22 <= exponent <= 22:
        return value, at, 0
    margin = abs(value) * 2.0**-50
    decided = np.float32(value - margin) == np.float32(value + margin)
    return value, at, 0 if decided else 1


@numba.njit(cache=True, nogil=True)
def fill(  # type: ignore[no-untyped-def]
    block,
    with_labels,
    first_feature,
    n_features,
    first_label,
    n_labels,
    empty_lines_are_rows,
    feature_ends,
    features,
    values,
    label_ends,
    labels,
    undecided,
):
    """Parse every line of a block into the arrays given; its last byte must be a line end.

    Returns: code, byte (of the fault), rows, features, labels, undecided numbers, and whether
    any row's feature ids are not strictly rising. ``undecided`` takes pairs (slot, byte) as
    long as it has room; the caller gives more room if it had not.
    """
    end = len(block)
    at = 0
    row = 0
    n_values = 0
    n_found = 0
    n_undecided = 0
    disorder = False
    while at < end:
        line = at
        while block[at] == _SPACE or block[at] == _TAB:
            at += 1
        bare = at == line
        if bare and not empty_lines_are_rows and (block[at] == _NEWLINE or block[at] == _RETURN):
            return EMPTY_LINE, at, row, n_values, n_found, n_undecided, disorder
        # Labels: the first token, unless a space precedes it or it is a feature (has a colon).
        if with_labels and bare and block[at] > _SPACE:
            start = n_found
            rising = True
            token = at
            while True:
                label, behind = _integer(block, at)
                if label < 0:
                    return BAD_LABEL, at, row, n_values, n_found, n_undecided, disorder
                if at == token and block[behind] == _COLON:
                    break  # a feature: the row has no labels
                label -= first_label
                if label < 0 or label >= n_labels:
                    return LABEL_RANGE, at, row, n_values, n_found, n_undecided, disorder
                if n_found > start and label <= labels[n_found - 1]:
                    rising = False
                labels[n_found] = label
                n_found += 1
                at = behind
                if block[at] == _COMMA:
                    at += 1
                    continue
                if block[at] > _SPACE:
                    return BAD_LABEL, at, row, n_values, n_found, n_undecided, disorder
                break
            if not rising:
                labels[start:n_found].sort()
                last = start
                for i in range(start + 1, n_found):
                    if labels[i] != labels[last]:
                        last += 1
                        labels[last] = labels[i]
                n_found = last + 1
        # Features, up to the end of the line.
        before = np.int64(-1)
        while True:
            while block[at] == _SPACE or block[at] == _TAB:
                at += 1
            if block[at] == _NEWLINE:
                at += 1
                break
            if block[at] == _RETURN:
                if block[at + 1] != _NEWLINE:
                    return BAD_END, at, row, n_values, n_found, n_undecided, disorder
                at += 1
                continue
            feature, behind = _integer(block, at)
            if feature < 0 or block[behind] != _COLON:
                return BAD_FEATURE, at, row, n_values, n_found, n_undecided, disorder
            feature -= first_feature
            if feature < 0 or feature >= n_features:
                return FEATURE_RANGE, at, row, n_values, n_found, n_undecided, disorder
            disorder |= feature <= before
            before = feature
            token = behind + 1
            value, at, verdict = _number(block, token)
            single = np.float32(value)
            if verdict == 2 or not np.isfinite(single) or block[at] > _SPACE:
                return BAD_VALUE, token, row, n_values, n_found, n_undecided, disorder
            if verdict == 1:
                if n_undecided < len(undecided):
                    undecided[n_undecided, 0] = n_values
                    undecided[n_undecided, 1] = token
                n_undecided += 1
            features[n_values] = feature
            values[n_values] = single
            n_values += 1
        feature_ends[row] = n_values
        label_ends[row] = n_found
        row += 1
    return OK, 0, row, n_values, n_found, n_undecided, disorder


@numba.njit(cache=True, nogil=True)
def order(ends, features, values, add):  # type: ignore[no-untyped-def]
    """Sort each row's features in place; repeated ids are added up, or end it.

    Returns the number of entries kept, and (row, id) of the first repeat if ``add`` is false,
    else (-1, -1).
    """
    kept = 0
    start = 0
    for row in range(len(ends)):
        end = ends[row]
        by_id = np.argsort(features[start:end], kind="mergesort")
        sorted_ids = features[start:end][by_id]
        sorted_values = values[start:end][by_id]
        first = kept
        for i in range(len(sorted_ids)):
            if kept > first and features[kept - 1] == sorted_ids[i]:
                if not add:
                    return kept, row, np.int64(sorted_ids[i])
                values[kept - 1] += sorted_values[i]
                continue
            features[kept] = sorted_ids[i]
            values[kept] = sorted_values[i]
            kept += 1
        start = end
        ends[row] = kept
    return kept, np.int64(-1), np.int64(-1)
