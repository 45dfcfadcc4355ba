"""Runs test files of azure-cosmos itself and compares the outcome with the list of expected failures.

The tests want a package that is not published; `python/shim` stands in for it. They treat exactly
`https://localhost:8081/` as "the emulator"; a plugin there says it of any free port, over TLS as the SDK's users have
it. A relay delays the answers a little, since some tests expect time-outs to strike.
"""

import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from urllib.parse import urlsplit

from runner.places import CLIENTS
from runner.relay import Relay
from runner.server import KEY
from runner.suite import Known, compare

FILES = [
    "test_ttl.py",
    "test_crud.py",
    "test_crud_async.py",
    "test_crud_container.py",
    "test_crud_container_async.py",
    "test_crud_database.py",
    "test_crud_database_async.py",
    "test_partition_key.py",
    "test_partition_key_async.py",
    "test_headers.py",
    "test_headers_async.py",
    "test_encoding.py",
    "test_encoding_async.py",
    "test_change_feed.py",
    "test_change_feed_async.py",
    "test_change_feed_all_versions.py",
    "test_change_feed_all_versions_async.py",
    "test_change_feed_split.py",
    "test_change_feed_split_async.py",
    "test_changefeed_partition_key_variation.py",
    "test_changefeed_partition_key_variation_async.py",
    "test_crud_response_payload_on_write_disabled.py",
    "test_crud_response_payload_on_write_disabled_async.py",
    "test_crud_subpartition.py",
    "test_crud_subpartition_async.py",
    "test_cosmos_responses.py",
    "test_cosmos_responses_async.py",
    "test_none_options.py",
    "test_none_options_async.py",
    "test_backwards_compatibility.py",
    "test_backwards_compatibility_async.py",
    "test_transactional_batch.py",
    "test_transactional_batch_async.py",
    "test_resource_id.py",
    "test_resource_id_async.py",
    "test_auto_scale.py",
    "test_auto_scale_async.py",
    "test_container_properties_cache.py",
    "test_container_properties_cache_async.py",
    "test_session.py",
    "test_session_async.py",
    "test_feed_range.py",
    "test_feed_range_async.py",
    "test_read_items.py",
    "test_read_items_async.py",
    "test_latest_session_token.py",
    "test_latest_session_token_async.py",
    "test_aad.py",
    "test_aad_async.py",
    "test_vector_policy.py",
    "test_vector_policy_async.py",
    "test_full_text_policy.py",
    "test_full_text_policy_async.py",
    "test_health_check.py",
    "test_health_check_async.py",
    "test_effective_preferred_locations.py",
    "test_effective_preferred_locations_async.py",
    "test_service_retry_policies.py",
    "test_service_retry_policies_async.py",
    "test_timeout_and_failover_retry_policy.py",
    "test_timeout_and_failover_retry_policy_async.py",
    "test_shared_cache_integration.py",
    "test_shared_cache_integration_async.py",
    "test_shared_cache_fault_injection.py",
    "test_shared_cache_fault_injection_async.py",
    "test_fault_injection_transport.py",
    "test_fault_injection_transport_async.py",
    "test_circuit_breaker_emulator.py",
    "test_circuit_breaker_emulator_async.py",
    "test_excluded_locations_emulator.py",
    "test_excluded_locations_emulator_async.py",
    "test_retryable_writes.py",
    "test_retryable_writes_async.py",
    "test_cosmos_http_logging_policy.py",
    "test_cosmos_http_logging_policy_async.py",
    "test_retry_policy.py",
    "test_retry_policy_async.py",
    "test_partition_split_query.py",
    "test_partition_split_query_async.py",
    "test_read_items_partition_split.py",
    "test_read_items_partition_split_async.py",
    "test_multimaster.py",
    "test_regional_routing_context.py",
    "test_regional_routing_context_async.py",
    "test_user_agent.py",
    "test_user_agent_async.py",
    "test_user_agent_overwrite_regression.py",
    "test_user_agent_overwrite_regression_async.py",
    "test_client_user_agent_async.py",
    "test_read_timeout_propagation.py",
    "test_read_timeout_propagation_async.py",
    "test_user_configs.py",
    "test_session_token_helpers.py",
    "test_globaldb.py",
    "test_diagnostics.py",
    "test_routing_map.py",
    "test_proxy.py",
    "test_query.py",
    "test_query_async.py",
    "test_query_cross_partition.py",
    "test_query_cross_partition_async.py",
    "test_query_execution_context.py",
    "test_query_response_headers.py",
    "test_query_response_headers_async.py",
    "test_query_hybrid_search.py",
    "test_query_hybrid_search_async.py",
    "test_query_vector_similarity.py",
    "test_query_vector_similarity_async.py",
    "test_aggregate.py",
    "test_orderby.py",
    "test_multi_orderby.py",
    "test_computed_properties.py",
    "test_computed_properties_async.py",
]
# Names of their tests carry random ids, which differ from process to process.
IN_ONE_PROCESS = [
    "test_query_feed_range.py",
    "test_query_feed_range_async.py",
    "test_query_feed_range_multipartition.py",
    "test_query_feed_range_multipartition_async.py",
]
RANDOM_ID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
KNOWN = CLIENTS / "python" / "sdk_expected_failures.json"
# Many of the tests wait for time-outs, and each process makes a database of its own: more processes than cores pay.
PROCESSES = 4
TEST_SECONDS = 180
SUITE_SECONDS = 2400


def run(places, report, tests, server, whole):
    """Runs the files, or a sample unless `whole`, and adds one line per file to the report."""
    known = Known.read(KNOWN)
    files, in_one_process = (FILES, IN_ONE_PROCESS) if whole else (sample(FILES), sample(IN_ONE_PROCESS))
    count = len(FILES) + len(IN_ONE_PROCESS)
    print(f"   running {len(files) + len(in_one_process)} of {count} files of azure-cosmos' own tests", flush=True)
    with Relay(urlsplit(server.https).port) as relay:
        suite = Pytest(places, tests, f"https://localhost:{relay.port}/")
        left_out = [f"--deselect={test}" for test in known.not_run]
        found = suite.outcomes("all files", ["-n", str(PROCESSES), *left_out, *files])
        if again := known.to_run_again(found):
            found |= suite.outcomes("once more", again)
        found |= suite.outcomes("in one process", ["-n", "0", *left_out, *in_one_process])
    if found:
        compare(report, "python", [*files, *in_one_process], found, known)
    else:
        report.add("python-suite", failed=1, note=f"pytest wrote no results, see {places.log('python-suite all files')}")


def sample(files):
    """Returns one file of each two that have the same tests for the two clients, now of the synchronous and now of the
    asynchronous one, and all other files."""
    asynchronous = [file for file in files if file.endswith("_async.py") and file.replace("_async.py", ".py") in files]
    left_out = {
        file if number % 2 else file.replace("_async.py", ".py") for number, file in enumerate(asynchronous)
    }
    return [file for file in files if file not in left_out]


class Pytest:
    """Runs pytest in the tests' folder against one endpoint."""

    def __init__(self, places, tests, endpoint):
        self._places = places
        self._tests = tests
        self._environment = environment(endpoint)

    def outcomes(self, label, selection):
        """Runs the selected tests; returns test id → (`passed` | `failed` | `skipped`, first line of the failure)."""
        results = self._places.scratch / f"python-suite-{label.replace(' ', '-')}.xml"
        command = [self._places.python, "-m", "pytest", "-q", "--rootdir=.", "-p", "no:cacheprovider", "-p", "as_emulator"]
        command += ["-W", "ignore"]
        command += [f"--timeout={TEST_SECONDS}", f"--junitxml={results}", *selection]
        with self._places.log(f"python-suite {label}").open("w") as output:
            subprocess.run(
                [str(word) for word in command],
                cwd=self._tests,
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=SUITE_SECONDS,
                check=False,
            )
        return read_results(results) if results.exists() else {}


def environment(endpoint):
    """Returns the environment that the tests' `test_config.py` reads."""
    return os.environ | {
        "ACCOUNT_HOST": endpoint,
        "ACCOUNT_KEY": KEY,
        "PYTHONPATH": str(CLIENTS / "python" / "shim"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def read_results(results):
    """Reads the file that pytest wrote; see `Pytest.outcomes`."""
    found = {}
    for case in ElementTree.parse(results).iter("testcase"):
        module, _, group = case.get("classname").partition(".")
        name = "::".join(part for part in (f"{module}.py", group, RANDOM_ID.sub("", case.get("name"))) if part)
        bad = next((part for part in case if part.tag in ("failure", "error")), None)
        if bad is not None:
            found[name] = ("failed", next(iter((bad.get("message") or "").splitlines()), "")[:300])
        elif case.find("skipped") is not None:
            found.setdefault(name, ("skipped", ""))
        else:
            found.setdefault(name, ("passed", ""))
    return found
