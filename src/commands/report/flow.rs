//! Sankey diagram of calls moving from tier to tier: nodes in columns, and ribbons whose width is
//! the number of calls.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::gather::ModelFigures;
use super::rows::CallRow;
use crate::commands::stats::table::name;
use supervisor_engine::session::RecordedOutcome;

/// Maximum number of tier columns; later tiers share the last one.
const MAX_COLUMNS: usize = 4;
/// Maximum number of models with their own node per column.
const MAX_NODES_PER_COLUMN: usize = 7;
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;
const NODE_WIDTH: f64 = 12.0;
const NODE_GAP: f64 = 22.0;
const TOP: f64 = 18.0;
/// Space for the labels of the last column.
const LABEL_WIDTH: f64 = 130.0;

/// The model a call was at, or how the call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FlowStage {
    /// A model, by its rank in the table of models.
    Model(usize),
    /// A model without its own node.
    OtherModel,
    Accepted,
    Refused,
    NoAnswer,
}

type FlowNode = (usize, FlowStage);

/// Counts the transitions of all calls that asked a model.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    links: BTreeMap<(FlowNode, FlowNode), usize>,
    labels: BTreeMap<FlowStage, String>,
    last_column: usize,
}

impl Flow {
    pub(super) fn of(rows: &[CallRow], models: &[ModelFigures]) -> Self {
        let rank: BTreeMap<usize, usize> = models
            .iter()
            .enumerate()
            .map(|(rank, model)| (model.name_index, rank))
            .collect();
        let path = |row: &CallRow| -> Vec<usize> {
            let mut path: Vec<usize> = row
                .attempts
                .iter()
                .map(|attempt| rank[&attempt.model])
                .collect();
            // Merge repeated attempts of the same tier.
            path.dedup();
            path.truncate(MAX_COLUMNS);
            path
        };
        let mut model_counts: Vec<BTreeMap<usize, usize>> = vec![BTreeMap::new(); MAX_COLUMNS];
        for row in rows {
            for (column, model) in path(row).into_iter().enumerate() {
                *model_counts[column].entry(model).or_default() += 1;
            }
        }
        let last_column = model_counts
            .iter()
            .filter(|column| !column.is_empty())
            .count();
        let named: Vec<Vec<usize>> = model_counts
            .into_iter()
            .map(|column| {
                let mut models: Vec<(usize, usize)> = column.into_iter().collect();
                models.sort_by_key(|(model, times)| (std::cmp::Reverse(*times), *model));
                models
                    .into_iter()
                    .take(MAX_NODES_PER_COLUMN)
                    .map(|(model, _)| model)
                    .collect()
            })
            .collect();
        let mut flow = Self {
            last_column,
            ..Self::default()
        };
        for row in rows.iter().filter(|row| !row.attempts.is_empty()) {
            let mut nodes: Vec<FlowNode> = Vec::new();
            for (column, model) in path(row).into_iter().enumerate() {
                let known = named[column].contains(&model);
                nodes.push((
                    column,
                    if known {
                        FlowStage::Model(model)
                    } else {
                        FlowStage::OtherModel
                    },
                ));
            }
            let end = match row.outcome {
                _ if row.is_accepted() => FlowStage::Accepted,
                RecordedOutcome::Fail => FlowStage::Refused,
                RecordedOutcome::Pass => FlowStage::Accepted,
                RecordedOutcome::Error | RecordedOutcome::Skipped | RecordedOutcome::Other(_) => {
                    FlowStage::NoAnswer
                }
            };
            nodes.push((last_column, end));
            for pair in nodes.windows(2) {
                *flow.links.entry((pair[0], pair[1])).or_default() += 1;
            }
            for (_, place) in nodes {
                flow.labels.entry(place).or_insert_with(|| match place {
                    FlowStage::Model(rank) => name(&models[rank].stats.model),
                    FlowStage::OtherModel => "other models".into(),
                    FlowStage::Accepted => "accepted".into(),
                    FlowStage::Refused => "refused".into(),
                    FlowStage::NoAnswer => "no answer".into(),
                });
            }
        }
        flow
    }

    /// Returns `None` if no call asked a model.
    pub(super) fn render(&self) -> Option<Markup> {
        if self.links.is_empty() {
            return None;
        }
        let mut sizes: BTreeMap<FlowNode, (usize, usize)> = BTreeMap::new();
        for ((from, to), times) in &self.links {
            sizes.entry(*from).or_default().1 += times;
            sizes.entry(*to).or_default().0 += times;
        }
        let size = |node: &FlowNode| sizes[node].0.max(sizes[node].1);
        let columns: Vec<Vec<FlowNode>> = (0..=self.last_column)
            .map(|column| {
                sizes
                    .keys()
                    .filter(|node| node.0 == column)
                    .copied()
                    .collect()
            })
            .collect();
        let total = |column: &Vec<FlowNode>| column.iter().map(size).sum::<usize>();
        let scale = columns
            .iter()
            .filter(|column| !column.is_empty())
            .map(|column| {
                (HEIGHT - NODE_GAP * (column.len() - 1) as f64) / total(column).max(1) as f64
            })
            .fold(f64::INFINITY, f64::min);
        let x = |column: usize| {
            column as f64 * (WIDTH - LABEL_WIDTH - NODE_WIDTH) / self.last_column.max(1) as f64
        };
        let mut y: BTreeMap<FlowNode, f64> = BTreeMap::new();
        for column in &columns {
            let mut at = TOP;
            for node in column {
                y.insert(*node, at);
                at += (size(node) as f64 * scale).max(2.0) + NODE_GAP;
            }
        }
        let (mut out_at, mut in_at) = (y.clone(), y.clone());
        let mut ribbons = Vec::new();
        for ((from, to), times) in &self.links {
            let width = (*times as f64 * scale).max(1.0);
            let (begin, end) = (out_at.get_mut(from)?, in_at.get_mut(to)?);
            let (x1, x2) = (x(from.0) + NODE_WIDTH, x(to.0));
            let (y1, y2, middle) = (*begin, *end, f64::midpoint(x1, x2));
            let path = format!(
                "M{x1:.1} {y1:.1}C{middle:.1} {y1:.1} {middle:.1} {y2:.1} {x2:.1} {y2:.1}V{:.1}C{middle:.1} {:.1} {middle:.1} {:.1} {x1:.1} {:.1}Z",
                y2 + width,
                y2 + width,
                y1 + width,
                y1 + width
            );
            *begin += width;
            *end += width;
            let tooltip = format!("{} → {}: {times}", self.labels[&from.1], self.labels[&to.1]);
            ribbons.push((path, class(to.1), tooltip));
        }
        let height = y
            .iter()
            .map(|(node, y)| y + size(node) as f64 * scale)
            .fold(0.0, f64::max)
            + 12.0;
        Some(html! {
            svg.chart.flow viewBox=(format!("0 0 {WIDTH} {height:.0}")) role="img" aria-label="Flow of calls from tier to tier" {
                @for (path, class, tooltip) in &ribbons {
                    path.ribbon.(class) d=(path) { title { (tooltip) } }
                }
                @for (node, y) in &y {
                    rect.node.(class(node.1)) x=(format!("{:.1}", x(node.0))) y=(format!("{y:.1}"))
                        width=(NODE_WIDTH) height=(format!("{:.1}", (size(node) as f64 * scale).max(2.0))) rx="2" {
                        title { (self.labels[&node.1]) ": " (size(node)) }
                    }
                    @let is_last = node.0 == self.last_column;
                    text.label x=(format!("{:.1}", if is_last { x(node.0) + NODE_WIDTH + 6.0 } else { x(node.0) }))
                        y=(format!("{:.1}", if is_last { y + 11.0 } else { y - 5.0 })) {
                        (self.labels[&node.1]) " " tspan.dim { (size(node)) }
                    }
                }
            }
        })
    }
}

fn class(place: FlowStage) -> &'static str {
    match place {
        FlowStage::Model(rank) => super::charts::series(rank),
        FlowStage::OtherModel => "s-other",
        FlowStage::Accepted => "s-pass",
        FlowStage::Refused => "s-fail",
        FlowStage::NoAnswer => "s-error",
    }
}
