//! Binary format of the engine's input for one run.
//!
//! A pack is a version byte, three bitmaps over the project's test ordinals (present, skipped, untimed) and the
//! failures. A failure has its distance from the one before. Numbers are LEB128 varints. A bitmap is a mode byte and
//!
//! | mode | then |
//! |---|---|
//! | 0 | nothing: the empty set |
//! | 1 | the number of zero words left out before, the number of words, and the words, little endian |
//! | 2 | the number of bits, and each bit's distance from the one after the bit before |
//! | 3 | nothing: the same set as `present` |
//!
//! A failure is its test's distance as in mode 2, then `failed_attempts * 4 + has_lost_ms * 2 + recovered`, then
//! the lost milliseconds where there are any.
//!
//! If tests had several executions, a list of them follows: their number, and for each its test's distance, the number of
//! its executions and that of the failed ones.

use assay_domain::{
    observation::{Bitmap, Failure, Repetition, RunEnding, RunFacts, RunObservations},
    test::TestOrdinal,
};

/// The first byte of a pack without repeated tests.
const PLAIN: u8 = 1;
/// The first byte of a pack with them. It differs, so that a pack that is cut before them is not valid.
const REPEATED: u8 = 2;

/// The observations of a run, apart from the run itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pack {
    /// Tests with a result.
    pub(crate) present: Bitmap,
    /// Those of them that were finally skipped or interrupted.
    pub(crate) skipped: Bitmap,
    /// Those of them without an attempt that reported a duration.
    pub(crate) untimed: Bitmap,
    /// Those not skipped that had a failed attempt, ascending.
    pub(crate) failures: Vec<Failure>,
    /// Those not skipped that had several executions, ascending.
    pub(crate) repeated: Vec<Repetition>,
}

/// The reason why bytes are not a valid pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadPack {
    #[error("unknown version")]
    Version,
    #[error("it ends too early")]
    Short,
    #[error("bytes follow its end")]
    Long,
    #[error("a number is too large")]
    Number,
    #[error("a test lies past the project's last")]
    Test,
    #[error("unknown kind of bitmap")]
    Mode,
    #[error("a test is skipped, untimed or failed without being present")]
    Absent,
    #[error("a failure without a failed attempt")]
    Failure,
    #[error("a test with a wrong number of executions")]
    Executions,
}

impl Pack {
    /// The run that it is of.
    pub(crate) fn observed(self, run: RunFacts, ending: RunEnding) -> RunObservations {
        RunObservations {
            run,
            present: self.present,
            skipped: self.skipped,
            untimed: self.untimed,
            failures: self.failures,
            repeated: self.repeated,
            other_names: Vec::new(),
            ending,
        }
    }

    /// The pack as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![if self.repeated.is_empty() { PLAIN } else { REPEATED }];
        put_bitmap(&mut out, &self.present, None);
        put_bitmap(&mut out, &self.skipped, Some(&self.present));
        put_bitmap(&mut out, &self.untimed, Some(&self.present));
        put(&mut out, self.failures.len());
        let mut next = 0;
        for failure in &self.failures {
            put(&mut out, failure.test.wrapping_sub(next));
            next = failure.test.wrapping_add(1);
            let flags = u64::from(failure.lost_ms.is_some()) * 2 + u64::from(failure.recovered);
            put(&mut out, u64::from(failure.failed_attempts) * 4 + flags);
            if let Some(lost) = failure.lost_ms {
                put(&mut out, lost);
            }
        }
        if !self.repeated.is_empty() {
            self.put_repeated(&mut out);
        }
        out
    }

    fn put_repeated(&self, out: &mut Vec<u8>) {
        put(out, self.repeated.len());
        let mut next = 0;
        for repetition in &self.repeated {
            put(out, repetition.test.wrapping_sub(next));
            next = repetition.test.wrapping_add(1);
            put(out, repetition.executions);
            put(out, repetition.failed);
        }
    }

    /// Decodes a pack of a project with this number of tests. Rejects bytes that do not describe valid
    /// observations, so that a damaged pack can neither crash the engine nor exhaust its memory.
    pub(crate) fn decode(bytes: &[u8], tests: u32) -> Result<Self, BadPack> {
        let (version, bytes) = bytes.split_first().ok_or(BadPack::Short)?;
        if ![PLAIN, REPEATED].contains(version) {
            return Err(BadPack::Version);
        }
        let mut input = Input { bytes, tests };
        let present = input.bitmap(None)?;
        let skipped = input.bitmap(Some(&present))?;
        let untimed = input.bitmap(Some(&present))?;
        let count = input.number()?;
        // Each has at least two bytes, which bounds the allocation by the input's length.
        let at_most = input.bytes.len() / 2;
        let mut failures = Vec::with_capacity(index(count)?.min(at_most));
        let mut next = 0;
        for _ in 0..count {
            let test = input.test(&mut next)?;
            failures.push(input.failure(test)?);
            if !present.contains(test) || skipped.contains(test) {
                return Err(BadPack::Absent);
            }
        }
        let mut pack = Self {
            present,
            skipped,
            untimed,
            failures,
            repeated: Vec::new(),
        };
        if *version == REPEATED {
            pack.repeated = input.repeated(&pack)?;
        }
        if input.bytes.is_empty() {
            Ok(pack)
        } else {
            Err(BadPack::Long)
        }
    }
}

fn put(out: &mut Vec<u8>, number: impl TryInto<u64>) {
    let mut rest = number.try_into().unwrap_or(u64::MAX);
    while rest >= 0x80 {
        out.push(low_bits(rest) | 0x80);
        rest >>= 7;
    }
    out.push(low_bits(rest));
}

fn low_bits(number: u64) -> u8 {
    u8::try_from(number & 0x7f).unwrap_or(0)
}

/// Writes a bitmap in the shortest of its forms.
fn put_bitmap(out: &mut Vec<u8>, set: &Bitmap, present: Option<&Bitmap>) {
    if set.is_empty() {
        out.push(0);
        return;
    }
    if present.is_some_and(|present| trimmed(present) == trimmed(set)) {
        out.push(3);
        return;
    }
    let words = trimmed(set);
    let skip = words.iter().take_while(|word| **word == 0).count();
    let rest = words.get(skip..).unwrap_or_default();
    let mut dense = vec![1];
    put(&mut dense, skip);
    put(&mut dense, rest.len());
    dense.extend(rest.iter().flat_map(|word| word.to_le_bytes()));
    let mut sparse = vec![2];
    put(&mut sparse, set.len());
    let mut next = 0;
    for test in set.iter() {
        put(&mut sparse, test - next);
        next = test + 1;
        if sparse.len() >= dense.len() {
            break;
        }
    }
    out.append(if sparse.len() < dense.len() {
        &mut sparse
    } else {
        &mut dense
    });
}

/// The words of a set up to its last bit.
fn trimmed(set: &Bitmap) -> &[u64] {
    let words = set.words();
    let end = words
        .iter()
        .rposition(|word| *word != 0)
        .map_or(0, |last| last + 1);
    words.get(..end).unwrap_or_default()
}

/// The bytes still to be read.
struct Input<'a> {
    bytes: &'a [u8],
    tests: u32,
}

impl Input<'_> {
    fn byte(&mut self) -> Result<u8, BadPack> {
        let (first, rest) = self.bytes.split_first().ok_or(BadPack::Short)?;
        self.bytes = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, BadPack> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(BadPack::Number);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BadPack::Number)
    }

    /// The next test, at its distance from `next`, which is advanced past it.
    fn test(&mut self, next: &mut u64) -> Result<TestOrdinal, BadPack> {
        let test = next.checked_add(self.number()?).ok_or(BadPack::Test)?;
        *next = test.saturating_add(1);
        match u32::try_from(test) {
            Ok(test) if test < self.tests => Ok(test),
            Ok(_) | Err(_) => Err(BadPack::Test),
        }
    }

    fn failure(&mut self, test: TestOrdinal) -> Result<Failure, BadPack> {
        let flags = self.number()?;
        let failed_attempts = u32::try_from(flags >> 2).map_err(|_| BadPack::Number)?;
        if failed_attempts == 0 {
            return Err(BadPack::Failure);
        }
        let lost_ms = if flags & 2 == 0 {
            None
        } else {
            Some(self.number()?)
        };
        Ok(Failure {
            test,
            recovered: flags & 1 == 1,
            failed_attempts,
            lost_ms,
        })
    }

    /// The executions of the tests of a pack that had several. There is no empty list.
    fn repeated(&mut self, pack: &Pack) -> Result<Vec<Repetition>, BadPack> {
        let count = self.number()?;
        if count == 0 {
            return Err(BadPack::Long);
        }
        // Each has at least three bytes.
        let at_most = self.bytes.len() / 3;
        let mut repeated = Vec::with_capacity(index(count)?.min(at_most));
        let mut next = 0;
        for _ in 0..count {
            let test = self.test(&mut next)?;
            let mut small = || u32::try_from(self.number()?).map_err(|_| BadPack::Number);
            let (executions, failed) = (small()?, small()?);
            if executions < 2 || failed > executions {
                return Err(BadPack::Executions);
            }
            if !pack.present.contains(test) || pack.skipped.contains(test) {
                return Err(BadPack::Absent);
            }
            repeated.push(Repetition {
                test,
                executions,
                failed,
            });
        }
        Ok(repeated)
    }

    /// A bitmap with all bits within the project and within `present`.
    fn bitmap(&mut self, present: Option<&Bitmap>) -> Result<Bitmap, BadPack> {
        let set = match self.byte()? {
            0 => Bitmap::default(),
            1 => self.dense()?,
            2 => self.sparse()?,
            3 => present.ok_or(BadPack::Mode)?.clone(),
            _ => return Err(BadPack::Mode),
        };
        let is_within = present.is_none_or(|present| {
            (0..)
                .zip(set.words())
                .all(|(index, word)| word & !present.word(index) == 0)
        });
        if is_within { Ok(set) } else { Err(BadPack::Absent) }
    }

    fn dense(&mut self) -> Result<Bitmap, BadPack> {
        let limit = u64::from(self.tests.div_ceil(u64::BITS));
        let (skip, count) = (self.number()?, self.number()?);
        if count == 0 || skip.checked_add(count).is_none_or(|end| end > limit) {
            return Err(BadPack::Test);
        }
        let (skip, count) = (index(skip)?, index(count)?);
        let (raw, rest) = self.bytes.split_at_checked(count * 8).ok_or(BadPack::Short)?;
        self.bytes = rest;
        let (words, _) = raw.as_chunks::<8>();
        let mut all = vec![0; skip];
        all.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        let past = self.tests % u64::BITS;
        let last = all.last().copied().unwrap_or(0);
        if last == 0 {
            return Err(BadPack::Long);
        }
        let whole = index(u64::from(self.tests / u64::BITS))?;
        if all.len() > whole && last >> past != 0 {
            return Err(BadPack::Test);
        }
        Ok(Bitmap::from_words(all))
    }

    fn sparse(&mut self) -> Result<Bitmap, BadPack> {
        let count = self.number()?;
        let mut set = Bitmap::default();
        let mut next = 0;
        for _ in 0..count {
            set.insert(self.test(&mut next)?);
        }
        Ok(set)
    }
}

fn index(number: u64) -> Result<usize, BadPack> {
    usize::try_from(number).map_err(|_| BadPack::Number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Observations over 700 tests: any of them present, of those any skipped, untimed or failed.
    fn packs() -> impl Strategy<Value = Pack> {
        let test = (
            0u32..700,
            0u8..4,
            any::<bool>(),
            1u32..9,
            any::<Option<u64>>(),
            any::<bool>(),
            1u32..20,
        );
        prop::collection::btree_map(0u32..700, test, 0..300).prop_map(|tests| {
            let mut pack = Pack::default();
            for (test, (_, kind, untimed, failed_attempts, lost_ms, recovered, executions)) in tests {
                pack.present.insert(test);
                if untimed {
                    pack.untimed.insert(test);
                }
                match kind {
                    0 => pack.skipped.insert(test),
                    1 => pack.failures.push(Failure {
                        test,
                        recovered,
                        failed_attempts,
                        lost_ms,
                    }),
                    _ => {}
                }
                if kind > 0 && executions > 1 {
                    pack.repeated.push(Repetition {
                        test,
                        executions,
                        failed: if kind == 1 && !recovered {
                            executions / 2 + 1
                        } else {
                            0
                        },
                    });
                }
            }
            pack
        })
    }

    proptest! {
        #[test]
        fn a_written_pack_is_read_back(pack in packs()) {
            prop_assert_eq!(Pack::decode(&pack.encode(), 700), Ok(pack));
        }

        #[test]
        fn any_bytes_are_a_pack_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), tests in 0u32..300) {
            for version in [PLAIN, REPEATED] {
                let bytes = [&[version], bytes.as_slice()].concat();
                let Ok(pack) = Pack::decode(&bytes, tests) else { continue };
                prop_assert!(pack.present.iter().all(|test| test < tests));
                prop_assert!(pack.skipped.iter().all(|test| pack.present.contains(test)));
            }
        }

        #[test]
        fn a_damaged_pack_never_panics(pack in packs(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut bytes = pack.encode();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            if let Ok(read) = Pack::decode(&bytes, 700) {
                prop_assert!(read.failures.iter().all(|failure| read.present.contains(failure.test)));
            }
            prop_assert!(Pack::decode(&bytes[..at], 700).is_err());
        }
    }

    #[test]
    fn a_run_of_clean_passes_is_one_bitmap() {
        let present: Bitmap = (0..5_000).collect();
        let bytes = Pack {
            present,
            ..Pack::default()
        }
        .encode();
        assert_eq!(bytes.len(), 1 + 3 + 79 * 8 + 3);
    }

    #[test]
    fn damage_is_refused_in_words() {
        let mut pack = Pack::default();
        pack.present.insert(5);
        pack.failures.push(Failure {
            test: 5,
            recovered: false,
            failed_attempts: 1,
            lost_ms: None,
        });
        let bytes = pack.encode();
        assert_eq!(Pack::decode(&bytes, 6).as_ref(), Ok(&pack));
        assert_eq!(
            Pack::decode(&bytes, 5),
            Err(BadPack::Test),
            "of a smaller project"
        );
        assert_eq!(Pack::decode(&[], 6), Err(BadPack::Short));
        assert_eq!(Pack::decode(&[9], 6), Err(BadPack::Version));
        assert_eq!(Pack::decode(&[&bytes[..], &[0]].concat(), 6), Err(BadPack::Long));
        pack.present.remove(5);
        pack.present.insert(4);
        assert_eq!(Pack::decode(&pack.encode(), 6), Err(BadPack::Absent));
    }
}
