//! Merges rankings by words and by embeddings (reciprocal rank fusion).

use std::{collections::HashMap, sync::Arc};

/// The constant of reciprocal rank fusion, with its usual value: ranks differ in weight, but no single one decides.
const RANK_CONSTANT: f32 = 60.0;

/// Merges rankings by reciprocal rank fusion. Returns at most `most` items with their scores, the best first.
#[expect(clippy::cast_precision_loss, reason = "rankings are short")]
pub fn fuse(rankings: &[Vec<usize>], most: usize) -> Vec<(usize, f32)> {
    let mut scores: HashMap<usize, f32> = HashMap::new();
    for ranking in rankings {
        for (place, tool) in ranking.iter().enumerate() {
            *scores.entry(*tool).or_default() += 1.0 / (RANK_CONSTANT + place as f32 + 1.0);
        }
    }
    rank(scores.into_iter().collect(), most)
}

/// Returns the indices of at most `most` vectors with the highest positive cosine similarity to `question`.
pub fn find_nearest(question: &[f32], vectors: &[Arc<[f32]>], most: usize) -> Vec<usize> {
    let similar = vectors.iter().enumerate().filter_map(|(at, vector)| {
        let similarity = cosine(question, vector);
        (similarity > 0.0).then_some((at, similarity))
    });
    let ranked = rank(similar.collect(), most).into_iter();
    ranked.map(|(at, _)| at).collect()
}

fn rank(mut scores: Vec<(usize, f32)>, most: usize) -> Vec<(usize, f32)> {
    scores.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scores.truncate(most);
    scores
}

/// The cosine similarity of two vectors; zero if they cannot be compared.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() {
        return 0.0;
    }
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 && lengths.is_finite() {
        dot(a, b) / lengths
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_high_in_both_rankings_comes_first() {
        let places = |fused: Vec<(usize, f32)>| fused.into_iter().map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(places(fuse(&[vec![1, 2, 3], vec![2, 4]], 10)), [2, 1, 4, 3]);
        assert_eq!(places(fuse(&[vec![1, 2, 3], vec![]], 2)), [1, 2]);
        assert_eq!(places(fuse(&[vec![], vec![7]], 5)), [7]);
    }

    #[test]
    fn the_nearest_vectors_are_those_that_point_the_same_way() {
        let vectors: Vec<Arc<[f32]>> = vec![
            [1.0, 0.0].into(),
            [3.0, 3.0].into(),
            [-1.0, 0.0].into(),
            [0.0].into(),
            [0.0, 0.0].into(),
        ];
        assert_eq!(find_nearest(&[2.0, 1.0], &vectors, 9), [1, 0]);
        assert_eq!(find_nearest(&[2.0, 1.0], &vectors, 1), [1]);
        assert_eq!(find_nearest(&[f32::NAN, 1.0], &vectors, 9), [0; 0]);
    }
}
