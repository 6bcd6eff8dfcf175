//! The contract of an index, clause by clause, on each of them.

mod clauses;
mod world;

use world::World;

/// Runs each clause on each index.
macro_rules! on_each_index {
    ($($clause:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $clause() {
                super::clauses::$clause(&super::World::sqlite()).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $clause() {
                super::clauses::$clause(&super::World::postgres()).await;
            })+
        }

        mod chroma_and_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $clause() {
                super::clauses::$clause(&super::World::chroma_and_sqlite()).await;
            })+
        }

        mod chroma_and_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $clause() {
                super::clauses::$clause(&super::World::chroma_and_postgres()).await;
            })+
        }
    };
}

on_each_index!(nothing_is_there_before_the_first_round, a_round_is_published_whole_and_found_again,);
