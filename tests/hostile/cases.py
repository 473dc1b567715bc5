"""Which test meets which known failure of privacy software, in which part of the product; or why it cannot be met there.

Every case names, for every part, either tests (``file::test``, from the folder tests, one a line) or a sentence. The tests
are real attacks: each fails if what it attacks gives way.
"""

from __future__ import annotations

from collections.abc import Mapping

PARTS = ("answers", "rows", "learned", "microdata", "ledger", "command line", "saved files", "engines")
"""Tables of answers; rows through channels; channels that are learned; microdata; accounts; the command line with its
settings file; saved channels, manifests, stores and pages; the engines that hold the data."""

# Reasons that several cases share.
DRAWS_NOTHING = "Draws nothing: it holds, or passes on, what was drawn elsewhere."
NO_DATA = "Sees no data: charges, prices and digests of what was released are all it is given."
SAME_PATH = "Goes the way of the other parts: the command calls the same functions on the same objects."
NOTHING_PROVED = "Claims no loss that could be exceeded: nothing is proved of it, and it is charged nothing."
READS_ONLY = "Only groups and filters rows by declared cells, and returns whole counts or cells; everything else happens in this process."
SAME_TABLE = "Reads rows through the same Table as answers, before it does anything of its own."
WRITTEN_ELSEWHERE = "Is written from what was released already, which the other parts' tests are about."

Cells = Mapping[str, tuple[str, ...] | str]


def case(title: str, **cells: str) -> tuple[str, Cells]:
    """A case: its title and, by part (an underscore for a blank), lines of tests or one sentence."""
    told: dict[str, tuple[str, ...] | str] = {}
    for part, text in cells.items():
        lines = tuple(line.strip() for line in text.strip().splitlines())
        told[part.replace("_", " ")] = lines if "::" in lines[0] else text
    return title, told


CASES: Mapping[str, tuple[str, Cells]] = {
    "C01": case(
        "Low bits of a double tell the value apart",
        answers="""hostile/test_mechanism_attacks.py::test_c01_what_is_observed_is_whole_for_every_table
            hostile/test_mechanism_attacks.py::test_c01_linear_answers_and_sums_are_on_a_public_grid
            hostile/test_mechanism_attacks.py::test_c01_every_neighbouring_output_has_positive_probability""",
        rows="hostile/test_row_cases.py::test_c01_outputs_are_declared_cells_whatever_came_in",
        learned="channels/test_learned.py::test_outputs_are_multiples_of_a_public_length",
        microdata=NOTHING_PROVED,
        ledger="Holds exact rationals and no released number.",
        command_line=SAME_PATH,
        saved_files="hostile/test_saved_cases.py::test_c01_published_numbers_are_whole_millionths",
        engines=READS_ONLY,
    ),
    "C02": case(
        "A floating-point sampler called secure",
        answers="""hostile/test_output.py::test_c02_there_is_no_other_sampler
            hostile/test_blowfish_attacks.py::test_c02_gaussian_noise_has_the_exact_law_and_no_floating_point_sampler_is_offered""",
        rows="hostile/test_channel_attacks.py::test_c32_no_float_generator_draws_rows",
        learned="hostile/test_saved_cases.py::test_c02_learned_outputs_are_drawn_by_the_noise_module",
        microdata="hostile/test_microdata_cases.py::test_c02_rows_are_drawn_and_ordered_by_the_noise_module",
        ledger=DRAWS_NOTHING,
        command_line="hostile/test_command_line_cases.py::test_c16_no_command_takes_a_seed_a_price_or_code",
        saved_files=DRAWS_NOTHING,
        engines="engines/test_spark_rows.py::test_every_row_is_drawn_for_itself_and_by_the_law_of_the_channel",
    ),
    "C03": case(
        "Sums depend on the order of rows",
        answers="""hostile/test_mechanism_attacks.py::test_c03_permuted_rows_give_the_same_exact_rows_bit_for_bit
            hostile/test_data.py::test_c03_order_of_rows_and_of_batches_changes_nothing""",
        rows="hostile/test_channel_attacks.py::test_the_order_of_the_output_does_not_depend_on_the_order_of_the_input",
        learned="hostile/test_saved_cases.py::test_c03_training_sees_the_same_counts_whatever_the_order_of_rows",
        microdata="hostile/test_microdata_cases.py::test_c03_the_order_of_rows_changes_no_requirement_and_no_count",
        ledger="test_ledger.py::test_any_sequence_keeps_the_sum_and_never_exceeds_the_total",
        command_line=SAME_PATH,
        saved_files=WRITTEN_ELSEWHERE,
        engines="""engines/test_every_engine.py::test_counts_equal_the_definition
            test_table.py::test_collect_sums_chunks_in_any_order_and_refuses_what_no_engine_should_return""",
    ),
    "C04": case(
        "A large value hides how far a small one moves a sum",
        answers="""hostile/test_mechanism_attacks.py::test_c04_changing_one_of_1024_rows_moves_a_sum_by_no_more_than_claimed
            hostile/test_mechanism_attacks.py::test_c04_values_whose_sums_would_not_be_exact_are_refused
            hostile/test_blowfish_attacks.py::test_c04_one_changed_row_of_1024_moves_what_is_observed_by_no_more_than_claimed
            hostile/test_data.py::test_c04_one_changed_row_moves_one_count_however_large_the_others""",
        rows="Adds nothing up: every row is one cell and goes through the channel by itself.",
        learned=NOTHING_PROVED,
        microdata=NOTHING_PROVED,
        ledger="test_ledger.py::test_the_smallest_excess_is_refused_with_exact_numbers",
        command_line=SAME_PATH,
        saved_files=WRITTEN_ELSEWHERE,
        engines="""test_engine.py::test_whole_numbers_that_doubles_cannot_divide_or_tell_apart
            engines/test_every_engine.py::test_counts_equal_the_definition""",
    ),
    "C05": case(
        "Integers overflow",
        answers="""hostile/test_mechanism_attacks.py::test_c05_large_counts_are_added_up_exactly
            hostile/test_mechanism_attacks.py::test_c05_counts_beyond_exact_noise_are_refused_before_charging
            hostile/test_mechanism_attacks.py::test_c05_a_sum_that_could_overflow_is_refused_before_charging
            hostile/test_mechanism_attacks.py::test_c05_noise_at_the_largest_scale_does_not_wrap
            hostile/test_attack_overflow.py::test_c05_squared_moves_of_several_records_do_not_wrap
            hostile/test_data.py::test_c05_integers_at_the_ends_of_their_types_do_not_wrap
            hostile/test_data.py::test_c05_counts_widen_and_are_refused_before_they_overflow""",
        rows="""channels/test_apply.py::test_codes_above_32_bits
            channels/test_apply.py::test_grids_at_the_ends_of_integer_types""",
        learned="channels/test_learned_training.py::test_columns_that_are_constant_huge_or_far_away",
        microdata="hostile/test_microdata_cases.py::test_c05_numbers_at_the_ends_of_their_types_are_clipped_like_any_other",
        ledger="test_ledger.py::test_sums_too_long_to_print_are_refused_all_the_same",
        command_line="hostile/test_command_line_cases.py::test_c05_numbers_that_no_count_holds_are_refused_by_their_key",
        saved_files="hostile/test_saved_cases.py::test_c31_a_saved_channel_with_entries_that_are_no_law_is_refused_or_is_exact",
        engines="""test_engine.py::test_codes_of_nearly_2_to_the_63
            engines/test_every_engine.py::test_counts_equal_the_definition""",
    ),
    "C06": case(
        "Single precision overflows after the clamp",
        answers="hostile/test_data.py::test_c06_single_precision_is_widened_not_overflowed",
        rows="channels/test_apply.py::test_fine_cells_of_narrow_doubles",
        learned="channels/test_learned_training.py::test_columns_that_are_constant_huge_or_far_away",
        microdata="hostile/test_microdata_frames.py::test_numbers_of_single_precision_are_the_same_at_transform",
        ledger=NO_DATA,
        command_line=SAME_PATH,
        saved_files=WRITTEN_ELSEWHERE,
        engines="test_engine.py::test_float_columns",
    ),
    "C07": case(
        "NaN, infinities, signed zeros and nulls",
        answers="hostile/test_data.py::test_c07_nan_infinities_negative_zero_and_null_have_a_public_rule",
        rows="""channels/test_apply.py::test_doubles_that_are_refused_name_their_column
            channels/test_apply.py::test_rows_that_may_not_be_missing_are_refused_whole
            hostile/test_channel_attacks.py::test_a_refusal_in_the_last_row_lets_nothing_out""",
        learned="hostile/test_saved_cases.py::test_c07_values_that_a_learned_channel_cannot_place_are_refused_without_a_word_of_them",
        microdata="""hostile/test_microdata_attacks.py::test_cells_without_a_value_are_refused_by_column
            hostile/test_microdata_attacks.py::test_missing_cells_may_be_declared_where_they_are_a_category""",
        ledger="test_ledger.py::test_only_exact_fractions_are_budgets",
        command_line="test_cli.py::test_wrong_data_are_refused_before_anything_is_spent",
        saved_files="""hostile/test_channel_attacks.py::test_c31_rows_that_are_no_law_make_no_channel
            hostile/test_saved_cases.py::test_c31_a_saved_channel_with_entries_that_are_no_law_is_refused_or_is_exact""",
        engines="engines/test_every_engine.py::test_counts_equal_the_definition",
    ),
    "C08": case(
        "A row that does not parse, however late",
        answers="""hostile/test_data.py::test_c08_what_does_not_parse_follows_the_rule_however_late_it_comes
            hostile/test_data.py::test_c08_one_row_of_another_type_changes_no_other_cell""",
        rows="hostile/test_row_cases.py::test_c08_what_does_not_parse_follows_the_rule_however_late_it_comes",
        learned=SAME_TABLE,
        microdata="test_microdata_release.py::test_cells_are_read_row_by_row",
        ledger=NO_DATA,
        command_line="hostile/test_command_line_cases.py::test_c08_a_bad_row_at_the_end_of_a_file_changes_nothing_else",
        saved_files=WRITTEN_ELSEWHERE,
        engines="""engines/test_every_engine.py::test_texts_of_numbers_that_postgres_itself_refuses
            engines/test_every_engine.py::test_every_number_in_text_is_read_as_the_nearest_double
            engines/test_every_engine.py::test_values_of_one_column_of_sqlite_may_have_any_type""",
    ),
    "C09": case(
        "The schema comes from the data",
        answers="hostile/test_data.py::test_c09_the_schema_comes_from_the_declaration_not_from_the_rows",
        rows="channels/test_apply.py::test_targets_must_fit_the_table",
        learned="test_rows_floor.py::test_what_does_not_fit_is_refused_before_anything_is_read",
        microdata="""hostile/test_microdata_attacks.py::test_a_request_that_does_not_fit_the_declaration_is_refused_before_rows_are_read
            test_microdata_release.py::test_declared_facts_alone_shape_what_is_fitted""",
        ledger="test_ledger.py::test_a_ledger_of_something_else_is_refused",
        command_line="test_starting.py::test_names_and_types_alone_reach_the_file",
        saved_files="channels/test_learned.py::test_files_whose_parts_do_not_fit_are_refused",
        engines="""engines/test_every_engine.py::test_columns_that_are_not_there_or_of_a_wrong_type
            test_engine.py::test_a_declared_type_that_is_no_number_is_refused""",
    ),
    "C10": case(
        "Bounds, bins or categories are left out",
        answers="hostile/test_data.py::test_c10_bounds_bins_and_categories_left_out_are_refused",
        rows="channels/test_named.py::test_domains_that_do_not_fit",
        learned="channels/test_learned.py::test_on_declared_cells_it_is_a_channel_like_others",
        microdata="test_microdata_release.py::test_declared_facts_alone_shape_what_is_fitted",
        ledger=NO_DATA,
        command_line="""test_starting.py::test_the_file_loads_when_every_blank_is_filled_in_and_not_before
            hostile/test_command_line_cases.py::test_c19_settings_state_no_sensitivity_no_scale_and_no_seed""",
        saved_files="channels/test_channel.py::test_a_saved_channel_is_the_same_channel",
        engines=READS_ONLY,
    ),
    "C11": case(
        "Codes in order of appearance",
        answers="hostile/test_data.py::test_c11_codes_come_from_the_domain_not_from_the_order_of_appearance",
        rows="""hostile/test_channel_attacks.py::test_dictionaries_say_nothing_of_the_rows
            hostile/test_row_cases.py::test_c13_a_column_of_one_value_and_of_all_take_the_same_dictionary""",
        learned="channels/test_learned.py::test_on_declared_cells_it_is_a_channel_like_others",
        microdata="""hostile/test_microdata_cases.py::test_c11_codes_and_dictionaries_come_from_the_declaration
            hostile/test_microdata_frames.py::test_repeated_categories_are_one_value_and_hidden_nulls_are_nulls""",
        ledger=NO_DATA,
        command_line=SAME_PATH,
        saved_files="hostile/test_row_cases.py::test_c13_a_column_of_one_value_and_of_all_take_the_same_dictionary",
        engines="hostile/test_data.py::test_c11_codes_come_from_the_domain_not_from_the_order_of_appearance",
    ),
    "C12": case(
        "A value that nobody declared",
        answers="hostile/test_data.py::test_c12_a_value_absent_from_the_domain_goes_to_other_or_is_refused_unnamed",
        rows="""test_rows.py::test_a_kept_attribute_leaves_by_its_declared_label
            hostile/test_row_cases.py::test_c26_values_inside_one_clamp_class_are_one_cell_of_a_channel""",
        learned=SAME_TABLE,
        microdata="""hostile/test_microdata_attacks.py::test_no_value_of_a_row_reaches_a_message_a_log_or_a_file
            hostile/test_microdata_attacks.py::test_a_value_that_was_not_fitted_is_refused_by_column_alone""",
        ledger=NO_DATA,
        command_line="hostile/test_output.py::test_c35_no_value_reaches_an_error_a_log_or_a_repr",
        saved_files=WRITTEN_ELSEWHERE,
        engines="engines/test_every_engine.py::test_a_value_that_was_said_not_to_exist_names_its_column_alone",
    ),
    "C13": case(
        "An empty cell and an absent one differ",
        answers="hostile/test_output.py::test_c13_an_empty_cell_and_an_absent_one_look_alike",
        rows="hostile/test_row_cases.py::test_c13_a_column_of_one_value_and_of_all_take_the_same_dictionary",
        learned="Brings what it learned back to the declared cells, so that it is published as any other channel's rows.",
        microdata="hostile/test_microdata_cases.py::test_c13_values_that_nobody_has_stand_in_the_groups_like_all_others",
        ledger=NO_DATA,
        command_line="test_cli.py::test_empty_and_one_row_tables_are_released_like_any_other",
        saved_files=WRITTEN_ELSEWHERE,
        engines="""engines/test_every_engine.py::test_no_rows
            engines/test_every_engine.py::test_a_sparse_domain_is_grouped""",
    ),
    "C14": case(
        "Order, statistics, metadata and times of files",
        answers="""hostile/test_output.py::test_c14_files_hold_the_published_numbers_and_nothing_else
            hostile/test_output.py::test_c14_row_order_does_not_reach_the_counts""",
        rows="""hostile/test_channel_attacks.py::test_files_of_rows_carry_no_statistics_and_no_metadata
            hostile/test_channel_attacks.py::test_the_order_of_the_output_does_not_depend_on_the_order_of_the_input""",
        learned="test_rows_learned.py::test_the_channel_is_saved_without_the_counts_it_was_learned_from",
        microdata="""hostile/test_microdata_cases.py::test_c14_rows_leave_in_an_order_of_their_own
            microdata/test_hybrid.py::test_an_index_does_not_leave
            hostile/test_microdata_frames.py::test_a_sources_dictionary_stays_behind""",
        ledger="Is private; it states times and digests of what was published, and no size or order of the data.",
        command_line="hostile/test_process.py::test_a_release_asks_nobody_and_leaves_nothing_in_home_or_among_temporary_files",
        saved_files="""hostile/test_saved_cases.py::test_c14_no_file_says_where_when_or_on_which_machine_it_was_made
            hostile/test_saved_cases.py::test_c15_a_saved_file_is_arrays_of_numbers_without_time_or_generator""",
        engines="engines/test_every_engine.py::test_rows_and_columns_beside_them",
    ),
    "C15": case(
        "Seeds, forks, one stream for two",
        answers="""hostile/test_output.py::test_c15_no_seed_and_no_two_releases_alike
            hostile/test_output.py::test_c15_a_fork_does_not_share_the_noise
            test_noise.py::test_forked_processes_share_no_noise
            test_noise_gaussian.py::test_forked_processes_share_no_noise""",
        rows="""hostile/test_row_cases.py::test_c15_a_fork_does_not_share_the_draws_of_rows
            hostile/test_channel_attacks.py::test_two_runs_differ""",
        learned="hostile/test_saved_cases.py::test_c15_a_fork_does_not_share_the_draws_of_a_learned_channel",
        microdata="hostile/test_microdata_cases.py::test_c15_the_same_request_draws_other_rows",
        ledger="""hostile/test_c20_ledger.py::test_parent_and_forked_child_share_one_file
            test_ledger.py::test_memory_belongs_to_one_process""",
        command_line="""hostile/test_command_line_cases.py::test_c19_settings_state_no_sensitivity_no_scale_and_no_seed
            hostile/test_command_line_cases.py::test_c16_no_command_takes_a_seed_a_price_or_code""",
        saved_files="hostile/test_saved_cases.py::test_c15_a_saved_file_is_arrays_of_numbers_without_time_or_generator",
        engines="engines/test_spark_rows.py::test_every_row_is_drawn_for_itself_and_by_the_law_of_the_channel",
    ),
    "C16": case(
        "A predictable generator",
        answers="hostile/test_output.py::test_c16_no_release_path_accepts_a_generator",
        rows="""hostile/test_output.py::test_c16_no_release_path_accepts_a_generator
            hostile/test_channel_attacks.py::test_c32_no_float_generator_draws_rows""",
        learned="""hostile/test_output.py::test_c16_no_release_path_accepts_a_generator
            hostile/test_saved_cases.py::test_c02_learned_outputs_are_drawn_by_the_noise_module""",
        microdata="hostile/test_microdata_cases.py::test_c02_rows_are_drawn_and_ordered_by_the_noise_module",
        ledger=DRAWS_NOTHING,
        command_line="hostile/test_command_line_cases.py::test_c16_no_command_takes_a_seed_a_price_or_code",
        saved_files=DRAWS_NOTHING,
        engines="engines/test_spark_rows.py::test_every_row_is_drawn_for_itself_and_by_the_law_of_the_channel",
    ),
    "C17": case(
        "Time tells the noise",
        answers="""hostile/test_output.py::test_c17_noise_is_reserved_before_the_data_are_read
            test_noise.py::test_the_search_takes_the_same_steps_whatever_the_words
            test_noise_gaussian.py::test_the_same_steps_whatever_the_words""",
        rows="hostile/test_row_cases.py::test_c17_what_is_drawn_takes_the_same_entropy_whatever_the_rows_hold",
        learned="Training takes a time that depends on the rows, of which nothing is proved; SECURITY.md says so.",
        microdata="Fitting takes a time that depends on the rows, of which nothing is proved; SECURITY.md says so.",
        ledger="Charges before anything is drawn, so that its time says nothing of a draw.",
        command_line=SAME_PATH,
        saved_files=WRITTEN_ELSEWHERE,
        engines="How long an engine takes depends on the data, and is left to whoever may time it; SECURITY.md says so.",
    ),
    "C18": case(
        "Epsilons that are none",
        answers="""hostile/test_mechanism_attacks.py::test_c18_epsilons_that_are_no_positive_number_are_refused
            hostile/test_mechanism_attacks.py::test_c18_epsilons_are_exact_whatever_they_were_written_as
            hostile/test_mechanism_attacks.py::test_c18_an_epsilon_too_small_for_the_noise_is_refused_and_not_spent
            hostile/test_mechanism_attacks.py::test_c18_a_huge_epsilon_is_a_huge_budget""",
        rows="channels/test_named.py::test_epsilon_that_is_none",
        learned="test_rows_floor.py::test_options_are_refused_by_name",
        microdata="hostile/test_microdata_attacks.py::test_no_other_guarantee_is_given",
        ledger="""test_ledger.py::test_only_exact_fractions_are_budgets
            test_ledger.py::test_negative_and_zero_budgets""",
        command_line="""hostile/test_command_line_cases.py::test_c18_an_amount_in_settings_that_is_no_positive_number_is_refused_by_its_key
            hostile/test_command_line_cases.py::test_c18_an_amount_in_settings_is_the_number_that_stands_there""",
        saved_files="hostile/test_row_attacks.py::test_a_label_that_was_edited_buys_nothing",
        engines="Is given no budget and no price.",
    ),
    "C19": case(
        "A sensitivity that the caller states",
        answers="""hostile/test_mechanism_attacks.py::test_c19_no_function_takes_a_sensitivity_or_a_scale
            hostile/test_mechanism_attacks.py::test_c19_a_specification_cannot_carry_a_sensitivity
            hostile/test_mechanism_attacks.py::test_c19_a_cost_of_zero_means_that_nothing_is_secret""",
        rows="""test_rows.py::test_a_given_channel_is_priced_as_it_is
            hostile/test_row_attacks.py::test_a_label_that_was_edited_buys_nothing""",
        learned="test_rows_floor.py::test_it_is_never_called_proved_unless_there_is_a_floor",
        microdata="hostile/test_microdata_attacks.py::test_no_other_guarantee_is_given",
        ledger="test_composition.py::test_verify_prices_every_row_anew",
        command_line="hostile/test_command_line_cases.py::test_c19_settings_state_no_sensitivity_no_scale_and_no_seed",
        saved_files="""hostile/test_row_attacks.py::test_a_label_that_was_edited_buys_nothing
            hostile/test_row_attacks.py::test_a_saved_channel_that_loses_a_billionth_more_is_refused""",
        engines="Is given no budget and no price.",
    ),
    "C20": case(
        "The account: tenths, races, crashes, old and edited files",
        answers="""test_session.py::test_budget_is_exact_and_charged_before_drawing
            test_session.py::test_a_failure_after_the_charge_leaves_the_charge""",
        rows="""hostile/test_row_attacks.py::test_what_fails_after_the_charge_says_that_it_was_charged
            hostile/test_row_attacks.py::test_a_copy_from_between_the_charge_and_the_draw_pays_again""",
        learned="test_rows_floor.py::test_training_that_fails_after_the_charge_says_so",
        microdata="hostile/test_microdata_attacks.py::test_refused_rows_are_neither_shown_nor_counted_and_nothing_is_spent",
        ledger="""hostile/test_c20_ledger.py::test_a_tenth_fits_ten_times_and_not_eleven
            hostile/test_c20_ledger.py::test_four_processes_cannot_overspend
            hostile/test_c20_ledger.py::test_threads_sharing_one_ledger_cannot_overspend
            hostile/test_c20_ledger.py::test_a_crash_between_charge_and_publication_stays_charged_and_is_named
            hostile/test_c20_ledger.py::test_an_old_copy_put_back_is_found_against_a_manifest
            hostile/test_c20_ledger.py::test_an_edited_ledger_grants_nothing
            hostile/test_ledger_under_fire.py::test_a_release_killed_anywhere_leaves_at_most_a_charge
            hostile/test_ledger_under_fire.py::test_two_copies_spent_apart_are_found_by_the_manifests_of_both
            hostile/test_ledger_under_fire.py::test_a_clock_that_goes_back_changes_nothing_and_is_told""",
        command_line="""hostile/test_output.py::test_c20_a_manifest_lists_only_what_its_ledger_charged
            test_cli.py::test_a_name_is_released_once_unless_again_is_said""",
        saved_files="""hostile/test_c20_ledger.py::test_an_old_copy_put_back_is_found_against_a_manifest
            test_editions.py::test_verify_warns_of_published_files_that_changed_or_are_gone""",
        engines="Is opened for reading only, and holds no account.",
    ),
    "C21": case(
        "A result that is read, or drawn, twice",
        answers="""hostile/test_mechanism_attacks.py::test_c21_a_release_read_twice_gives_the_same_bytes
            hostile/test_mechanism_attacks.py::test_c21_changing_what_was_read_does_not_change_the_release
            hostile/test_mechanism_attacks.py::test_c21_noise_of_one_release_cannot_be_had_again
            hostile/test_mechanism_attacks.py::test_c21_the_same_query_again_is_charged_and_drawn_afresh""",
        rows="hostile/test_row_cases.py::test_c21_rows_read_or_saved_twice_are_the_same",
        learned="Is released as rows are, drawn once into a table.",
        microdata="hostile/test_microdata_cases.py::test_c21_microdata_read_or_saved_twice_are_the_same",
        ledger="test_ledger.py::test_a_name_is_released_once_an_edition",
        command_line="test_cli.py::test_a_name_is_released_once_unless_again_is_said",
        saved_files="channels/test_permanent.py::test_later_releases_repeat_the_answer_and_other_epochs_do_not",
        engines="""engines/test_spark_rows.py::test_rows_of_a_worker_that_dies_half_way_are_published_exactly_once
            engines/test_spark_rows.py::test_two_draws_of_one_partition_are_refused
            engines/test_spark.py::test_rows_that_are_drawn_anew_are_refused""",
    ),
    "C22": case(
        "One mechanism at the price of another",
        answers="""hostile/test_blowfish_attacks.py::test_c22_every_mechanism_owns_the_price_of_its_own_noise
            hostile/test_blowfish_attacks.py::test_c22_a_rho_cannot_be_spent_from_an_account_in_epsilon""",
        rows="test_rows.py::test_every_declared_kind_keeps_what_is_charged",
        learned="test_rows_floor.py::test_a_floor_is_priced_as_the_channel_that_it_is",
        microdata="hostile/test_microdata_attacks.py::test_no_other_guarantee_is_given",
        ledger="test_ledger.py::test_gaussian_noise_has_no_price_in_epsilon",
        command_line="hostile/test_command_line_cases.py::test_c22_a_loss_in_one_unit_is_not_charged_in_another",
        saved_files="hostile/test_row_attacks.py::test_a_file_of_a_channel_that_private_rows_shaped_proves_nothing",
        engines="Is given no budget and no price.",
    ),
    "C23": case(
        "A vector whose last position, or length, is not protected",
        answers="hostile/test_blowfish_attacks.py::test_c23_every_position_is_noised_and_lengths_are_declared",
        rows="hostile/test_row_cases.py::test_c23_every_position_is_drawn_and_as_many_rows_leave_as_there_are",
        learned="channels/test_learned.py::test_values_of_other_dimensions_are_refused",
        microdata="test_microdata_release.py::test_the_rows_are_those_of_the_mapping_and_of_nothing_else",
        ledger=NO_DATA,
        command_line=SAME_PATH,
        saved_files="test_report_rows.py::test_what_does_not_fit_is_refused",
        engines=READS_ONLY,
    ),
    "C24": case(
        "Clusters that start from rows, and what is kept of them",
        answers="""hostile/test_blowfish_attacks.py::test_c24_clusters_start_from_the_domain_and_nothing_else_of_the_rows_is_kept
            test_kmeans.py::test_nothing_but_centroids_and_sizes_is_released""",
        rows="Clusters nothing.",
        learned="Output places are learned from rows, which is why it is called measured and docs/privacy.md says what that means.",
        microdata="hostile/test_microdata_attacks.py::test_c36_figures_of_private_rows_are_in_nothing_that_is_written",
        ledger="test_kmeans.py::test_later_policies_price_clusters_too",
        command_line="test_kmeans.py::test_settings_files_ask_for_clusters",
        saved_files="test_kmeans.py::test_nothing_but_centroids_and_sizes_is_released",
        engines=READS_ONLY,
    ),
    "C25": case(
        "Choices with wide scores or very many candidates",
        answers="hostile/test_blowfish_attacks.py::test_c25_no_exponential_mechanism_is_offered",
        rows="hostile/test_row_cases.py::test_c25_wide_scores_leave_no_row_without_a_law",
        learned="channels/test_learned.py::test_values_too_far_away_are_refused_wherever_they_come",
        microdata="microdata/test_baselines.py::test_exponential_weights_are_the_metric_s",
        ledger=DRAWS_NOTHING,
        command_line=SAME_PATH,
        saved_files="channels/test_named.py::test_an_epsilon_at_the_end_of_doubles_is_kept_and_ends",
        engines=DRAWS_NOTHING,
    ),
    "C26": case(
        "A clean copy is made and the raw one used",
        answers="hostile/test_blowfish_attacks.py::test_c26_values_inside_one_clamp_class_are_one_value",
        rows="hostile/test_row_cases.py::test_c26_values_inside_one_clamp_class_are_one_cell_of_a_channel",
        learned=SAME_TABLE,
        microdata="hostile/test_microdata_cases.py::test_c26_values_inside_one_clamp_class_are_one_value",
        ledger=NO_DATA,
        command_line=SAME_PATH,
        saved_files=WRITTEN_ELSEWHERE,
        engines="engines/test_every_engine.py::test_counts_equal_the_definition",
    ),
    "C27": case(
        "Facts that outlive what they were about",
        answers="hostile/test_blowfish_attacks.py::test_c27_facts_about_a_domain_do_not_outlive_it",
        rows="channels/test_apply.py::test_a_table_that_is_open_already_is_read_under_the_channels_domain",
        learned="channels/test_learned.py::test_checkpoints_of_another_make_are_refused",
        microdata="microdata/test_hybrid.py::test_other_rows_are_tested_anew",
        ledger="test_editions.py::test_a_ledger_holds_policies_for_the_same_rows_of_people_only",
        command_line="""test_cli.py::test_ledger_of_another_table
            test_cli.py::test_another_policy_on_the_same_ledger""",
        saved_files="hostile/test_row_attacks.py::test_another_column_of_ids_is_another_epoch",
        engines="engines/test_hostile_names.py::test_c27_a_table_made_anew_with_other_columns_is_not_read_by_place",
    ),
    "C28": case(
        "A lie about public counts",
        answers="""hostile/test_blowfish_attacks.py::test_c28_a_lie_about_public_counts_is_refused_before_the_budget_is_looked_at
            hostile/test_blowfish_attacks.py::test_c28_declarations_that_cannot_be_true_are_refused_by_name
            hostile/test_blowfish_attacks.py::test_c28_answers_are_counts
            hostile/test_blowfish_attacks.py::test_c28_a_million_public_counts_are_refused_at_once
            hostile/test_attack_account.py::test_c28_every_known_count_is_compared_with_the_table_also_where_two_read_alike""",
        rows="hostile/test_command_line_cases.py::test_c28_a_lie_about_a_public_count_refuses_every_kind_of_release_before_it_is_charged",
        learned="hostile/test_command_line_cases.py::test_c28_a_lie_about_a_public_count_refuses_every_kind_of_release_before_it_is_charged",
        microdata="hostile/test_command_line_cases.py::test_c28_a_lie_about_a_public_count_refuses_every_kind_of_release_before_it_is_charged",
        ledger="hostile/test_blowfish_attacks.py::test_c28_a_slip_in_a_public_count_does_not_reach_the_ledger",
        command_line="hostile/test_command_line_cases.py::test_c28_a_lie_about_a_public_count_refuses_every_kind_of_release_before_it_is_charged",
        saved_files="States the counts that were declared, as public facts, and compares none of them.",
        engines=READS_ONLY,
    ),
    "C29": case(
        "Public counts make secrets distinguishable",
        answers="""hostile/test_blowfish_attacks.py::test_c29_public_counts_raise_the_price_as_the_theory_says
            hostile/test_blowfish_attacks.py::test_c29_tying_counts_that_leave_too_much_open_are_refused_by_name
            test_rule_r.py::test_costs_are_never_below_the_truth""",
        rows="""test_rows.py::test_a_price_is_never_below_any_neighbour_and_exact_without_known_counts
            test_rows.py::test_known_counts_and_several_rows_of_a_person_have_no_price""",
        learned="Its floor is priced as any channel's rows are; without a floor nothing is proved.",
        microdata=NOTHING_PROVED,
        ledger="test_composition.py::test_a_count_that_becomes_known_later_prices_the_past_anew",
        command_line=SAME_PATH,
        saved_files="test_report_losses.py::test_public_counts_are_told_with_their_numbers_and_consequences",
        engines=READS_ONLY,
    ),
    "C30": case(
        "Secrets that no path joins",
        answers="hostile/test_blowfish_attacks.py::test_c30_what_no_path_joins_is_said_to_be_disclosed",
        rows="""hostile/test_row_attacks.py::test_what_a_policy_leaves_open_is_said_to_leave
            hostile/test_row_attacks.py::test_a_joint_place_says_what_no_secret_covers""",
        learned="test_rows_floor.py::test_a_floor_is_refused_where_training_reads_a_secret",
        microdata=NOTHING_PROVED,
        ledger="test_composition.py::test_what_went_out_exactly_binds_later_policies",
        command_line="test_cli.py::test_explain_starts_with_what_is_not_protected",
        saved_files="test_report.py::test_six_lines",
        engines=READS_ONLY,
    ),
    "C31": case(
        "Rows of a solver that are no law, or break the ratio",
        answers="test_mechanisms.py::test_rule_4_strategies_are_integer_matrices",
        rows="""hostile/test_channel_attacks.py::test_c31_rows_that_are_no_law_make_no_channel
            hostile/test_channel_attacks.py::test_c31_rows_sum_to_one_exactly_and_epsilon_is_that_of_the_table_drawn_from
            hostile/test_channel_attacks.py::test_c31_an_entry_of_solver_size_beside_a_zero_has_no_finite_epsilon
            channels/test_repair.py::test_always_keeps_its_bounds""",
        learned="test_rows_learned.py::test_the_table_keeps_the_distance_and_leaks_little",
        microdata="microdata/test_obfuscate.py::test_solutions_keep_what_they_promise",
        ledger="test_rows.py::test_the_ledger_keeps_what_a_small_channel_observes",
        command_line=SAME_PATH,
        saved_files="""hostile/test_saved_cases.py::test_c31_a_saved_channel_with_entries_that_are_no_law_is_refused_or_is_exact
            hostile/test_row_attacks.py::test_a_saved_table_whose_columns_are_out_of_order_is_damaged""",
        engines=DRAWS_NOTHING,
    ),
    "C32": case(
        "Rows drawn from doubles",
        answers="Draws no rows; its noise is C01 and C02.",
        rows="""hostile/test_channel_attacks.py::test_c32_outputs_of_probability_zero_never_come
            hostile/test_channel_attacks.py::test_c32_an_output_less_likely_than_any_word_is_still_there
            hostile/test_channel_attacks.py::test_c32_no_float_generator_draws_rows""",
        learned="channels/test_learned.py::test_outcomes_of_no_probability_never_come",
        microdata="hostile/test_microdata_cases.py::test_c32_no_donor_comes_from_where_the_law_is_zero",
        ledger=DRAWS_NOTHING,
        command_line=SAME_PATH,
        saved_files="channels/test_channel.py::test_a_saved_channel_is_the_same_channel",
        engines="engines/test_spark_rows.py::test_every_row_is_drawn_for_itself_and_by_the_law_of_the_channel",
    ),
    "C33": case(
        "Many rows of one person",
        answers="""test_counterexamples_people.py::test_squared_moves_grow_with_the_square_of_the_rows
            test_counterexamples_people.py::test_selection_that_looks_at_values_changes_which_row_is_kept""",
        rows="""hostile/test_channel_attacks.py::test_c33_permanent_answers_are_by_id_and_epoch_never_by_value
            hostile/test_channel_attacks.py::test_c33_without_permanent_answers_every_row_is_drawn_anew
            test_rows.py::test_places_and_rows_of_a_person_share_the_budget_as_it_is_printed""",
        learned="test_rows_floor.py::test_permanent_answers_need_a_channel_that_is_not_made_anew",
        microdata="Looks at one row at a time, and says so; whoever has several rows is protected by none of its figures.",
        ledger="test_rows.py::test_an_epoch_is_charged_once_and_answers_stay",
        command_line="hostile/test_command_line_cases.py::test_c33_settings_give_a_person_one_answer_and_charge_it_once",
        saved_files="""hostile/test_row_attacks.py::test_a_copy_that_is_put_back_each_time_pays_each_time
            channels/test_permanent.py::test_two_at_once_agree""",
        engines="engines/test_every_engine.py::test_rows_of_a_person_and_weights",
    ),
    "C34": case(
        "Post-processing that looks at the data again",
        answers="""hostile/test_mechanism_attacks.py::test_c34_a_release_holds_neither_table_nor_counts
            hostile/test_mechanism_attacks.py::test_c34_answers_refuse_exact_counts
            hostile/test_mechanism_attacks.py::test_c34_rounding_to_the_truth_does_not_happen
            test_presentation.py::test_presenting_can_reach_no_table""",
        rows="""hostile/test_row_attacks.py::test_a_remapped_channel_loses_what_it_lost_before
            channels/test_privic.py::test_the_truth_does_not_steer_the_rounds""",
        learned="test_rows_floor.py::test_training_sees_what_the_floor_let_out_and_rows_stay_together",
        microdata="Is a function of the rows from end to end, which is why nothing is proved of it.",
        ledger=NO_DATA,
        command_line="test_presentation.py::test_what_is_shown_does_not_change_when_the_table_does",
        saved_files="test_presentation.py::test_what_is_shown_does_not_change_when_the_table_does",
        engines="engines/test_every_engine.py::test_a_query_reads",
    ),
    "C35": case(
        "Errors, logs, reprs and tracebacks that quote data",
        answers="""hostile/test_output.py::test_c35_no_value_reaches_an_error_a_log_or_a_repr
            hostile/test_output.py::test_c35_unexpected_errors_are_not_quoted
            hostile/test_output.py::test_c35_true_counts_are_in_no_traceback
            hostile/test_data.py::test_c35_no_value_reaches_a_message_a_warning_or_a_stream
            hostile/test_data.py::test_c35_an_error_of_ours_drops_what_it_was_raised_from""",
        rows="""hostile/test_channel_attacks.py::test_c35_no_value_reaches_an_error
            hostile/test_channel_attacks.py::test_c35_nothing_that_is_held_shows_a_value
            hostile/test_channel_attacks.py::test_c35_no_row_is_in_a_traceback""",
        learned="""hostile/test_saved_cases.py::test_c35_nothing_that_a_learned_channel_says_shows_a_row
            test_rows_floor.py::test_why_nothing_was_learned_from_private_rows_is_not_said""",
        microdata="""hostile/test_microdata_attacks.py::test_no_value_of_a_row_reaches_a_message_a_log_or_a_file
            hostile/test_microdata_attacks.py::test_nothing_that_is_held_shows_a_row
            hostile/test_microdata_attacks.py::test_no_row_is_in_a_traceback""",
        ledger="hostile/test_output.py::test_c35_no_value_reaches_an_error_a_log_or_a_repr",
        command_line="""hostile/test_command_line_cases.py::test_c35_no_value_reaches_a_spinner_or_a_summary
            hostile/test_command_line_cases.py::test_c35_a_file_named_in_the_place_of_another_is_not_quoted
            leakage/test_attacks_cli.py::test_duplicated_ids_name_no_value""",
        saved_files="channels/test_permanent.py::test_the_file_is_its_owners_and_holds_no_value_and_no_id",
        engines="""hostile/test_output.py::test_c35_a_failing_engine_is_quoted_nowhere
            engines/test_every_engine.py::test_a_failing_query_shows_no_value
            engines/test_every_engine.py::test_a_server_that_is_not_there_shows_no_address""",
    ),
    "C36": case(
        "Figures computed from private rows, published beside the release",
        answers="test_select.py::test_rule_12_a_plan_reads_nothing",
        rows="""hostile/test_row_attacks.py::test_private_priors_and_digests_of_private_channels_are_withheld
            hostile/test_row_attacks.py::test_priors_of_other_persons_stay_where_they_are""",
        learned="test_rows_learned.py::test_nothing_of_it_is_published_unless_asked",
        microdata="""hostile/test_microdata_attacks.py::test_c36_figures_of_private_rows_are_in_nothing_that_is_written
            hostile/test_microdata_attacks.py::test_how_far_rows_are_from_a_requirement_is_not_told""",
        ledger="hostile/test_microdata_attacks.py::test_c36_figures_of_private_rows_are_in_nothing_that_is_written",
        command_line="hostile/test_microdata_attacks.py::test_c36_figures_leave_only_where_the_settings_say_so",
        saved_files="""channels/test_learned.py::test_a_private_channels_file_is_the_owners_alone
            test_rows_learned.py::test_the_channel_is_saved_without_the_counts_it_was_learned_from""",
        engines=READS_ONLY,
    ),
    "C37": case(
        "Code, paths, quotes and names that act",
        answers="""hostile/test_output.py::test_c37_attributes_with_hostile_names_run_through
            hostile/test_output.py::test_c37_specifications_are_plain_values
            hostile/test_isolation.py::test_c37_nothing_in_the_package_runs_what_it_reads
            hostile/test_isolation.py::test_c37_names_from_settings_and_data_are_text_in_the_page""",
        rows="""hostile/test_isolation.py::test_c37_no_text_of_rows_runs_in_a_spreadsheet
            hostile/test_isolation.py::test_c37_a_store_of_permanent_answers_is_not_published
            test_report_rows.py::test_every_text_of_a_manifest_is_escaped""",
        learned="""hostile/test_saved_cases.py::test_c37_nothing_in_a_saved_file_is_run_and_nothing_in_it_is_unpacked
            channels/test_learned.py::test_a_file_holds_the_channel_and_nothing_that_runs""",
        microdata="""hostile/test_isolation.py::test_c37_no_text_of_microdata_runs_in_a_spreadsheet
            hostile/test_microdata_attacks.py::test_the_mapping_is_refused_wherever_it_would_be_published
            test_report_microdata.py::test_every_text_is_escaped_and_no_private_value_leaves""",
        ledger="""hostile/test_saved_cases.py::test_c37_a_store_or_ledger_that_is_something_else_is_left_as_it_is
            test_ledger.py::test_any_name_goes_in_and_out
            hostile/test_ledger_under_fire.py::test_a_ledger_and_what_stands_beside_it_belong_to_their_owner_alone
            test_ledger.py::test_places_where_no_ledger_can_be""",
        command_line="""hostile/test_output.py::test_c37_release_names_cannot_leave_the_folder
            hostile/test_command_line_cases.py::test_c37_arguments_are_names_and_nothing_else
            hostile/test_command_line_cases.py::test_c37_no_name_is_obeyed_by_a_terminal
            hostile/test_command_line_cases.py::test_c37_no_name_begins_a_line_of_its_own
            hostile/test_command_line_cases.py::test_c37_everything_is_printed_through_one_door
            hostile/test_isolation.py::test_c37_init_writes_through_no_link
            hostile/test_isolation.py::test_c37_names_that_are_one_file_to_some_disks_are_refused_before_a_charge
            hostile/test_isolation.py::test_c37_such_a_store_is_refused_before_anything_is_charged
            hostile/test_isolation.py::test_c37_a_demo_removes_nothing_behind_a_link
            hostile/test_process.py::test_no_variable_of_the_environment_and_nothing_in_home_changes_a_number""",
        saved_files="""hostile/test_output.py::test_c37_a_manifest_with_paths_outside_is_not_followed
            hostile/test_saved_cases.py::test_c37_a_manifest_that_is_none_is_refused_and_named
            hostile/test_saved_cases.py::test_c37_a_manifest_that_is_none_stops_or_is_replaced_by_the_next_release
            hostile/test_isolation.py::test_c37_a_link_in_the_folder_is_refused_where_nothing_of_ours_stood
            hostile/test_isolation.py::test_c37_links_put_in_place_of_published_files_are_replaced_not_followed
            hostile/test_isolation.py::test_c37_a_saved_channel_replaces_a_link_and_not_what_it_leads_to""",
        engines="""hostile/test_data.py::test_c37_names_of_columns_are_only_names
            hostile/test_data.py::test_c37_names_of_tables_and_files_are_only_names
            engines/test_hostile_names.py::test_c37_every_column_is_the_one_that_was_named
            engines/test_hostile_names.py::test_c37_a_name_with_a_nul_reaches_no_other_column
            engines/test_hostile_names.py::test_c37_no_category_is_part_of_a_query
            engines/test_hostile_names.py::test_c37_every_table_is_the_one_that_was_named""",
    ),
    "C38": case(
        "An attack that flatters the release",
        answers="Is never attacked: its loss is proved, and nothing measured stands beside it.",
        rows="""channels/test_evidence.py::test_words_say_where_the_figures_come_from
            test_report_rows.py::test_the_three_words_are_kept_apart""",
        learned="""channels/test_learned_judging.py::test_attackers_show_no_more_than_there_is_and_little_less
            channels/test_learned_judging.py::test_without_allowance_for_rows_that_did_not_come_the_ends_fail""",
        microdata="""hostile/test_microdata_attacks.py::test_c38_baseline_ceiling_and_interval_stand_beside_every_attack
            hostile/test_microdata_attacks.py::test_c38_fifty_rows_of_training_are_called_too_few
            hostile/test_microdata_attacks.py::test_c38_the_target_does_not_leak_into_what_the_attacker_sees
            hostile/test_microdata_attacks.py::test_c38_an_attack_gets_no_better_by_what_is_done_to_the_release
            hostile/test_microdata_attacks.py::test_c38_leakage_counts_the_group_of_a_donor_whose_row_is_his_alone""",
        ledger="Measures nothing.",
        command_line="leakage/test_attacks_cli.py::test_a_table_and_a_sentence_for_each",
        saved_files="""hostile/test_saved_cases.py::test_c38_an_attacker_reads_our_own_csv_as_it_was_published
            test_report_microdata.py::test_proved_is_said_of_nothing""",
        engines="Measures nothing.",
    ),
}
