"""URLs of no engine, and engines that lack an operation: each is refused by its name, with what to do instead."""

from __future__ import annotations

import ibis
import pyarrow as pa
import pytest
from ibis.backends.sql.compilers.duckdb import DuckDBCompiler

from tetraodon import Domain, Integer, Table
from tetraodon.errors import Unsupported

DOMAIN = Domain(age=Integer(0, 9))


@pytest.mark.parametrize(
    "url", ["foo://user:canary@host/base", "s3://canary/people.parquet", "spark://canary:7077"]
)
def test_a_url_of_no_engine_is_refused_by_its_scheme_alone(url: str) -> None:
    scheme = url.partition(":")[0]
    with pytest.raises(
        Unsupported, match=f"no engine for {scheme}://; known: duckdb, .*pyspark.* by its path"
    ) as caught:
        Table(url, DOMAIN, table="people")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("url", ["duckdb://md:canary", "duckdb://motherduck:canary"])
def test_a_duckdb_on_a_server_is_refused(url: str) -> None:
    with pytest.raises(Unsupported, match="COPY the table to parquet files") as caught:
        Table(url, DOMAIN, table="people")
    assert "canary" not in str(caught.value)


def test_an_operation_that_an_engine_lacks_is_named_and_nothing_of_the_query_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = ibis.duckdb.connect().create_table("people", pa.table({"age": [1, 2, 987654321]}))
    table = Table(people, DOMAIN)
    monkeypatch.setattr(DuckDBCompiler, "visit_SearchedCase", DuckDBCompiler.visit_Undefined)
    for read in (table.counts, lambda: list(table.rows())):
        with pytest.raises(
            Unsupported, match=r"this engine lacks .* \(SearchedCase\)\. Write the table to parquet"
        ) as caught:
            read()
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        assert "canary" not in str(caught.value)
