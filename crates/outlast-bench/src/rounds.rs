//! Rounds: each side runs in every round, and the median of the rounds is the result.

/// The figures of `N` sides in every round.
pub(crate) struct Rounds<const N: usize, T = f64>(Vec<[T; N]>);

impl<const N: usize, T: Copy> Rounds<N, T> {
    /// Runs `rounds` rounds after a warm-up. In each round another side is the first.
    pub(crate) fn run<E>(
        rounds: usize,
        mut turn: impl FnMut(usize) -> Result<T, E>,
    ) -> Result<Self, E> {
        let mut all = Vec::with_capacity(rounds);
        for round in 0..=rounds {
            let mut figures = [None; N];
            for step in 0..N {
                let side = (round + step) % N;
                figures[side] = Some(turn(side)?);
            }
            if round > 0 {
                all.push(figures.map(|figure| figure.expect("every side has run in this round")));
            }
        }
        Ok(Self(all))
    }

    /// One figure of each measurement.
    pub(crate) fn map(&self, figure: impl Fn(&T) -> f64) -> Rounds<N> {
        let rounds = self.0.iter();
        Rounds(rounds.map(|round| round.each_ref().map(&figure)).collect())
    }
}

impl<const N: usize> Rounds<N> {
    /// The median figure of a side.
    pub(crate) fn median_of(&self, side: usize) -> f64 {
        median(self.0.iter().map(|figures| figures[side]))
    }

    /// The figure of every side minus that of `base` in the same round.
    pub(crate) fn minus(&self, base: usize) -> Self {
        let less = |figures: &[f64; N]| figures.map(|figure| figure - figures[base]);
        Self(self.0.iter().map(less).collect())
    }

    /// The median of the ratios within each round, because a disturbance affects both sides of a
    /// round.
    pub(crate) fn ratio(&self, above: usize, below: usize) -> f64 {
        median(self.0.iter().map(|figures| figures[above] / figures[below]))
    }
}

pub(crate) fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    match figures.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => figures[n / 2],
        n => f64::midpoint(figures[n / 2 - 1], figures[n / 2]),
    }
}
