//! The tables, as the migrations make them; a test compares the two.

diesel::table! {
    organization (id) {
        id -> Uuid,
        name -> Text,
        plan -> Text,
        created_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    project (id) {
        id -> Uuid,
        organization_id -> Uuid,
        name -> Text,
        stable_branch -> Text,
        release_branches -> Array<Text>,
        chat_events -> Nullable<Array<Text>>,
        pr_comments -> Bool,
        created_at -> Timestamptz,
        runs -> Integer,
        tests -> Integer,
        signatures -> Integer,
        browsers -> Integer,
        evaluated_at -> Nullable<Timestamptz>,
        observed -> Uuid,
        deleted_at -> Nullable<Timestamptz>,
        judged -> Nullable<Uuid>,
        stable_names -> Bool,
        test_changes -> Integer,
        renames_text -> Nullable<Text>,
        renames_at -> Nullable<Timestamptz>,
        joined_tests -> Nullable<Jsonb>,
        failed_suites -> Array<Text>,
        judged_signatures -> Integer,
        edges -> Integer,
        chat_served -> Nullable<Array<Text>>,
        chat_served_at -> Nullable<Timestamptz>,
        flake_budget -> Nullable<Array<Integer>>,
        is_budget_exceeded -> Bool,
        health -> Nullable<Array<BigInt>>,
        failed_release_suites -> Jsonb,
    }
}

// The owners' columns of `project`. Diesel's tables have at most 32 columns, unless it is compiled for 64, which takes
// three times as long.
diesel::table! {
    #[sql_name = "project"]
    project_owners (id) {
        id -> Uuid,
        owners_path -> Nullable<Text>,
        owners_text -> Nullable<Text>,
        owners_files -> Nullable<Text>,
        owners_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    project_entry (id) {
        id -> Uuid,
        organization_id -> Uuid,
        name -> Text,
        stable_branch -> Text,
        created_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    api_key (id) {
        id -> Uuid,
        kind -> Text,
        hash -> Bytea,
        prefix -> Text,
        organization_id -> Uuid,
        project_id -> Nullable<Uuid>,
        created_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
        last_used_on -> Nullable<Date>,
        name -> Nullable<Text>,
        backfill -> Bool,
        pull_requests_only -> Bool,
        trust -> Nullable<Jsonb>,
    }
}

diesel::table! {
    ended_session (id) {
        id -> Uuid,
        key_id -> Nullable<Uuid>,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    run (project_id, number) {
        project_id -> Uuid,
        number -> Integer,
        id -> Uuid,
        key_hash -> Bytea,
        sharded -> Bool,
        branch -> Nullable<Text>,
        commit_sha -> Nullable<Text>,
        commit_message -> Nullable<Text>,
        author_name -> Nullable<Text>,
        tested_revision -> Nullable<Text>,
        pull_request_number -> Nullable<BigInt>,
        pull_request_title -> Nullable<Text>,
        ci_provider -> Nullable<Text>,
        suite -> Nullable<Text>,
        run_url -> Nullable<Text>,
        merge_base -> Nullable<Text>,
        base_branch -> Nullable<Text>,
        status -> Nullable<Text>,
        started_at -> Timestamptz,
        finished_at -> Nullable<Timestamptz>,
        shards_received -> Integer,
        shards_expected -> Nullable<Integer>,
        total -> Integer,
        passed -> Integer,
        failed -> Integer,
        skipped -> Integer,
        recovered -> Integer,
        duration_ms -> Nullable<BigInt>,
        counts_in_verdicts -> Bool,
        complete -> Bool,
    }
}

diesel::table! {
    daily_count (project_id, day, status) {
        project_id -> Uuid,
        day -> Timestamptz,
        status -> Text,
        runs -> Integer,
    }
}

diesel::table! {
    branch (project_id, name) {
        project_id -> Uuid,
        name -> Text,
        newest -> Timestamptz,
    }
}

diesel::table! {
    part (project_id, run_number, number) {
        project_id -> Uuid,
        run_number -> Integer,
        number -> SmallInt,
        id -> Uuid,
        shard_id -> Uuid,
        index -> Nullable<Integer>,
        content -> Bytea,
        state -> Text,
        status -> Nullable<Text>,
        superseded -> Bool,
        started_at -> Timestamptz,
        finished_at -> Nullable<Timestamptz>,
        expected -> Nullable<Integer>,
        report_errors -> Jsonb,
        sender_job -> Nullable<Text>,
        sender_id -> Nullable<Text>,
        sender_runner -> Nullable<Text>,
        job_attempt -> BigInt,
        command_attempt -> Integer,
        import_id -> Nullable<Uuid>,
        report_path -> Nullable<Text>,
        report_files -> Integer,
    }
}

diesel::table! {
    test (project_id, ordinal) {
        project_id -> Uuid,
        ordinal -> Integer,
        name -> Text,
        file_path -> Nullable<Text>,
        name_hash -> Bytea,
        file_hash -> Bytea,
        written_name -> Nullable<Text>,
        shown_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    browser (project_id, ordinal) {
        project_id -> Uuid,
        ordinal -> Integer,
        name -> Text,
        name_hash -> Bytea,
    }
}

diesel::table! {
    signature (project_id, ordinal) {
        project_id -> Uuid,
        ordinal -> Integer,
        fingerprint -> Text,
        version -> SmallInt,
        title -> Text,
        category -> Text,
    }
}

diesel::table! {
    signature_alias (project_id, fingerprint) {
        project_id -> Uuid,
        fingerprint -> Text,
        signature -> Integer,
    }
}

diesel::table! {
    result_block (project_id, block, started_at, run_number) {
        project_id -> Uuid,
        started_at -> Timestamptz,
        run_number -> Integer,
        block -> Integer,
        present -> Nullable<Bytea>,
        status -> Bytea,
        duration_ms -> Array<Nullable<SmallInt>>,
        long_duration_ms -> Nullable<Array<Nullable<BigInt>>>,
        start_step_ms -> Nullable<Array<Nullable<Integer>>>,
        browser -> Nullable<Array<Integer>>,
        attempts -> Nullable<Array<Integer>>,
        part -> Nullable<Array<SmallInt>>,
    }
}

diesel::table! {
    attempt (project_id, test, started_at, run_number, part, place) {
        project_id -> Uuid,
        started_at -> Timestamptz,
        occurred_at -> Timestamptz,
        duration_ms -> Nullable<BigInt>,
        run_number -> Integer,
        test -> Integer,
        browser -> Integer,
        signature -> Nullable<Integer>,
        place -> Integer,
        retry -> Integer,
        part -> SmallInt,
        status -> SmallInt,
        timed -> Bool,
        message -> Nullable<Text>,
        texts -> Nullable<Integer>,
        texts_place -> Nullable<Integer>,
        execution -> Integer,
        is_final -> Bool,
        skip_reason -> Nullable<Text>,
    }
}

diesel::table! {
    attempt_texts (project_id, run_number, part, number, started_at) {
        project_id -> Uuid,
        started_at -> Timestamptz,
        run_number -> Integer,
        part -> SmallInt,
        number -> Integer,
        errors -> Array<Jsonb>,
        outputs -> Nullable<Array<Jsonb>>,
    }
}

diesel::table! {
    partition (starts_at) {
        starts_at -> Timestamptz,
        ends_at -> Timestamptz,
        name -> Text,
    }
}

diesel::table! {
    run_pack (project_id, run_number) {
        project_id -> Uuid,
        started_at -> Timestamptz,
        run_number -> Integer,
        pack -> Bytea,
    }
}

diesel::table! {
    /// The verdicts on 128 tests with neighbouring numbers.
    verdict_block (project_id, block) {
        project_id -> Uuid,
        block -> Integer,
        status -> Array<Nullable<Text>>,
        reason -> Array<Nullable<Text>>,
        in_window -> Array<Bool>,
        last_run -> Array<Nullable<Integer>>,
        last_status -> Array<Nullable<SmallInt>>,
        last_offset_ms -> Array<Nullable<Integer>>,
        newest -> Array<Nullable<Timestamptz>>,
        time_lost_ms -> Array<Nullable<BigInt>>,
        flake_score -> Array<Double>,
        flake_rate -> Array<Double>,
        broken_probability -> Array<Nullable<Double>>,
        impact -> Array<Double>,
        body -> Array<SmallInt>,
        bodies -> Array<Text>,
    }
}

diesel::table! {
    /// The runs behind the signals of a test.
    verdict_evidence (project_id, test) {
        project_id -> Uuid,
        test -> Integer,
        failing_on -> Text,
        run_numbers -> Array<Integer>,
    }
}

diesel::table! {
    /// The outbox of messages.
    edge (project_id, number) {
        project_id -> Uuid,
        number -> Integer,
        judged_at -> Timestamptz,
        event -> Text,
        suite -> Text,
        test -> Nullable<Integer>,
        signature -> Nullable<Integer>,
        from_status -> Nullable<Text>,
        to_status -> Nullable<Text>,
        run_id -> Nullable<Uuid>,
        run_number -> Nullable<Integer>,
        since_run -> Nullable<Integer>,
        is_red -> Bool,
        settled -> Nullable<Integer>,
        settled_at -> Nullable<Timestamptz>,
        is_cancelled -> Bool,
        flaky_tests -> Nullable<Integer>,
        release_branch -> Nullable<Text>,
    }
}

diesel::table! {
    /// The messages to each target.
    message (project_id, target, number) {
        project_id -> Uuid,
        target -> Text,
        number -> Integer,
        id -> Uuid,
        kind -> Text,
        through -> Integer,
        created_at -> Timestamptz,
        content -> Nullable<Jsonb>,
        thread -> Nullable<Uuid>,
        attempts -> Integer,
        next_attempt_at -> Nullable<Timestamptz>,
        delivered_at -> Nullable<Timestamptz>,
        receipt -> Nullable<Text>,
        error -> Nullable<Text>,
    }
}

diesel::table! {
    upload (project_id, at, id) {
        project_id -> Uuid,
        at -> Timestamptz,
        id -> Uuid,
        key_id -> Uuid,
        run_id -> Uuid,
        bytes -> BigInt,
        run_number -> Integer,
        files -> Integer,
        effect -> Text,
        client -> Nullable<Text>,
        shard_id -> Nullable<Uuid>,
        decision -> Nullable<Jsonb>,
        sender -> Nullable<Text>,
    }
}

diesel::table! {
    /// Fixes of flaky tests.
    fix (project_id, test, id) {
        project_id -> Uuid,
        test -> Integer,
        id -> Uuid,
        body -> Jsonb,
        decided -> Nullable<Jsonb>,
    }
}

diesel::table! {
    /// What an ingest key stored on a day.
    upload_day (project_id, day, key_id) {
        project_id -> Uuid,
        day -> Date,
        key_id -> Uuid,
        tests -> BigInt,
        bytes -> BigInt,
    }
}

diesel::table! {
    /// A hash of the text of each applied migration.
    __migration_checksum (version) {
        version -> Text,
        sha256 -> Bytea,
    }
}

diesel::table! {
    /// The applied migrations, written by diesel.
    __diesel_schema_migrations (version) {
        version -> Text,
        run_on -> Timestamp,
    }
}

diesel::allow_tables_to_appear_in_same_query!(
    organization,
    project,
    project_entry,
    api_key,
    ended_session,
    run,
    daily_count,
    branch,
    part,
    test,
    browser,
    signature,
    signature_alias,
    result_block,
    attempt,
    attempt_texts,
    partition,
    run_pack,
    verdict_block,
    verdict_evidence,
    edge,
    message,
    upload,
    upload_day,
    fix
);

diesel::allow_columns_to_appear_in_same_group_by_clause!(
    attempt::test,
    run::number,
    run::id,
    run::branch,
    run::started_at,
);
