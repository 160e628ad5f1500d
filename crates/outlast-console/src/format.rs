//! Durations, counts and sizes as text.

/// A duration in at most two units: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    if ms < 10_000 {
        format!("{}.{} s", seconds, ms % 1_000 / 100)
    } else if minutes == 0 {
        format!("{seconds} s")
    } else if hours == 0 {
        format!("{minutes} min {} s", seconds % 60)
    } else if days == 0 {
        format!("{hours} h {} min", minutes % 60)
    } else {
        format!("{days} d {} h", hours % 24)
    }
}

/// A short interval: `500 ms`, `2.5 s`, `1 min 30 s`.
pub(crate) fn interval(ms: u64) -> String {
    if ms < 1_000 {
        format!("{ms} ms")
    } else {
        duration(ms)
    }
}

/// A count with separators: `12,345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size: `412 B`, `3.2 KiB`, `16.0 MiB`.
pub(crate) fn bytes(size: usize) -> String {
    match size {
        0..1_024 => format!("{size} B"),
        1_024..1_048_576 => format!("{:.1} KiB", size as f64 / 1_024.0),
        _ => format!("{:.1} MiB", size as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        for (ms, text) in [
            (0, "0.0 s"),
            (1_450, "1.4 s"),
            (59_999, "59 s"),
            (185_000, "3 min 5 s"),
            (7_800_000, "2 h 10 min"),
            (356_400_000, "4 d 3 h"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn counts_have_separators_and_sizes_have_units() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [12, 1_536, 16 << 20].map(bytes),
            ["12 B", "1.5 KiB", "16.0 MiB"]
        );
    }
}
