"""What recorded sessions say of the tools of common MCP servers: effect, typical and largest answer in kB.

Data only, one line a tool. The effect is by what the server documents, never by its annotations; the sizes are the
median and the 99th percentile of 3,400 recorded calls, whose recorder cut answers at 98 kB. None: not recorded.
"""

from typing import TypeAlias

from pagefold.tools.model import SideEffectClass

Rows: TypeAlias = tuple[tuple[str, SideEffectClass, float | None, float | None], ...]

_PURE = SideEffectClass.PURE
_READ = SideEffectClass.READ_ONLY
_LOCAL = SideEffectClass.MUTATES_LOCAL
_EXTERNAL = SideEffectClass.MUTATES_EXTERNAL
_UNKNOWN = SideEffectClass.INDETERMINATE

ARXIV_LOCAL: Rows = (
    ("download_paper", _LOCAL, 0.2, 0.2),
    ("read_paper", _READ, 39.4, 39.4),
    ("search_papers", _READ, 5.8, 20.3),
)
CANVAS: Rows = (
    ("canvas_create_announcement", _EXTERNAL, 1.9, 2.0),
    ("canvas_create_course", _EXTERNAL, 1.1, 1.1),
    ("canvas_enroll_user", _EXTERNAL, 0.8, 0.8),
    ("canvas_get_account", _READ, 0.4, 0.4),
    ("canvas_get_dashboard_cards", _READ, 0.3, 0.3),
    ("canvas_get_quiz", _READ, 2.2, 2.2),
    ("canvas_get_submission", _READ, 2.7, 3.6),
    ("canvas_get_user_profile", _READ, 0.5, 0.5),
    ("canvas_health_check", _READ, 0.2, 0.2),
    ("canvas_list_account_courses", _READ, 4.8, 4.8),
    ("canvas_list_account_users", _READ, 1.1, 6.0),
    ("canvas_list_announcements", _READ, 11.3, 11.4),
    ("canvas_list_assignments", _READ, 2.7, 10.9),
    ("canvas_list_courses", _READ, 22.9, 26.8),
    ("canvas_list_quiz_questions", _READ, 2.0, 8.3),
    ("canvas_list_quizzes", _READ, 2.4, 2.4),
    ("canvas_start_quiz_attempt", _EXTERNAL, 0.9, 0.9),
    ("canvas_submit_assignment_with_file", _EXTERNAL, 1.7, 1.7),
    ("canvas_submit_quiz_answers", _EXTERNAL, 1.1, 1.1),
    ("canvas_update_course", _EXTERNAL, 0.9, 1.0),
    ("canvas_upload_file_from_path", _EXTERNAL, 0.8, 0.8),
)
EMAILS: Rows = (
    ("download_attachment", _LOCAL, 0.1, 0.1),
    ("get_emails", _READ, 1.5, 2.7),
    ("read_email", _READ, 1.5, 1.9),
    ("search_emails", _READ, 0.1, 0.5),
    ("send_email", _EXTERNAL, 0.1, 0.1),
)
EXCEL: Rows = (
    ("apply_formula", _LOCAL, 0.1, 0.1),
    ("create_workbook", _LOCAL, 0.1, 0.1),
    ("delete_range", _LOCAL, 0.1, 0.1),
    ("get_workbook_metadata", _PURE, 0.2, 0.4),
    ("read_data_from_excel", _PURE, 8.7, 98.0),
    ("write_data_to_excel", _LOCAL, 0.1, 0.8),
)
FETCH: Rows = (
    ("fetch_html", _READ, 49.9, 52.5),
    ("fetch_markdown", _READ, 49.4, 98.7),
    ("fetch_txt", _READ, 0.1, 2.0),
)
FILESYSTEM: Rows = (
    ("create_directory", _LOCAL, 0.1, 0.1),
    ("directory_tree", _PURE, 4.9, 72.9),
    ("edit_file", _LOCAL, 1.7, 2.9),
    ("get_file_info", _READ, 0.3, 0.3),
    ("list_allowed_directories", _PURE, 0.1, 0.1),
    ("list_directory", _PURE, 0.1, 1.9),
    ("list_directory_with_sizes", _PURE, 0.5, 0.5),
    ("move_file", _LOCAL, 0.2, 0.2),
    ("read_file", _PURE, 1.1, 98.0),
    ("read_media_file", _PURE, None, None),
    ("read_multiple_files", _PURE, 3.5, 38.6),
    ("read_text_file", _PURE, 1.1, 98.0),
    ("search_files", _PURE, 0.1, 1.4),
    ("write_file", _LOCAL, 0.1, 22.0),
)
GIT: Rows = (
    ("git_add", _LOCAL, 0.1, 0.1),
    ("git_branch", _READ, None, None),
    ("git_checkout", _LOCAL, None, None),
    ("git_commit", _LOCAL, 0.1, 0.1),
    ("git_create_branch", _LOCAL, None, None),
    ("git_diff", _READ, None, None),
    ("git_diff_staged", _READ, None, None),
    ("git_diff_unstaged", _READ, None, None),
    ("git_init", _LOCAL, None, None),
    ("git_log", _READ, None, None),
    ("git_reset", _LOCAL, None, None),
    ("git_show", _READ, None, None),
    ("git_status", _READ, 0.4, 0.4),
)
GITHUB: Rows = (
    ("add_issue_comment", _EXTERNAL, None, None),
    ("create_branch", _EXTERNAL, 0.4, 0.4),
    ("create_issue", _EXTERNAL, None, None),
    ("create_or_update_file", _EXTERNAL, 1.8, 1.8),
    ("create_pull_request", _EXTERNAL, None, None),
    ("create_repository", _EXTERNAL, None, None),
    ("fork_repository", _EXTERNAL, None, None),
    ("get_commit", _READ, None, None),
    ("get_file_contents", _READ, 0.8, 9.9),
    ("get_issue", _READ, None, None),
    ("get_issue_comments", _READ, None, None),
    ("get_me", _READ, 0.5, 0.5),
    ("get_pull_request", _READ, None, None),
    ("get_pull_request_comments", _READ, None, None),
    ("get_pull_request_files", _READ, None, None),
    ("list_branches", _READ, 1.5, 1.5),
    ("list_commits", _READ, 3.8, 4.3),
    ("list_issues", _READ, None, None),
    ("list_pull_requests", _READ, None, None),
    ("merge_pull_request", _EXTERNAL, None, None),
    ("push_files", _EXTERNAL, None, None),
    ("search_code", _READ, 0.1, 0.1),
    ("search_issues", _READ, None, None),
    ("search_repositories", _READ, 1.0, 16.3),
    ("update_issue", _EXTERNAL, None, None),
)
GOOGLE_CLOUD: Rows = (
    ("bigquery_create_dataset", _EXTERNAL, 0.2, 0.2),
    ("bigquery_get_dataset_info", _READ, 0.3, 0.4),
    ("bigquery_list_datasets", _READ, 0.1, 0.1),
    ("bigquery_load_csv_data", _EXTERNAL, 0.2, 0.2),
    ("bigquery_run_query", _EXTERNAL, 0.4, 3.3),
    ("logging_create_log_bucket", _EXTERNAL, 0.2, 0.2),
    ("logging_create_log_sink", _EXTERNAL, 0.2, 0.3),
    ("logging_export_logs_to_bigquery", _EXTERNAL, 0.2, 0.4),
    ("logging_list_log_buckets", _READ, 0.1, 0.1),
    ("logging_list_log_sinks", _READ, 3.4, 3.4),
    ("logging_list_logs", _READ, 0.5, 1.2),
    ("logging_read_logs", _READ, 0.2, 0.6),
    ("logging_write_log", _EXTERNAL, 0.1, 0.1),
    ("storage_create_bucket", _EXTERNAL, 0.1, 0.1),
    ("storage_list_buckets", _READ, 0.1, 0.1),
    ("storage_list_objects", _READ, 0.1, 0.1),
    ("storage_upload_file", _EXTERNAL, 0.2, 0.2),
)
GOOGLE_MAP: Rows = (
    ("maps_directions", _READ, 1.4, 3.0),
    ("maps_distance_matrix", _READ, 10.2, 10.2),
    ("maps_geocode", _READ, 0.2, 0.2),
    ("maps_place_details", _READ, 4.9, 4.9),
    ("maps_search_places", _READ, 0.5, 8.0),
)
GOOGLE_SHEET: Rows = (
    ("batch_update_cells", _EXTERNAL, 0.5, 2.0),
    ("create_spreadsheet", _EXTERNAL, 0.2, 0.2),
    ("get_sheet_data", _READ, 98.0, 98.6),
    ("list_sheets", _READ, 0.2, 0.3),
    ("list_spreadsheets", _READ, 0.1, 0.2),
    ("rename_sheet", _EXTERNAL, 0.1, 0.1),
    ("update_cells", _EXTERNAL, 0.2, 3.3),
)
K8S: Rows = (
    ("kubectl_apply", _EXTERNAL, 0.3, 0.8),
    ("kubectl_context", _EXTERNAL, 0.3, 0.3),
    ("kubectl_create", _EXTERNAL, 0.3, 0.4),
    ("kubectl_describe", _READ, 1.5, 1.6),
    ("kubectl_generic", _EXTERNAL, 0.1, 0.1),
    ("kubectl_get", _READ, 6.4, 10.7),
    ("kubectl_scale", _EXTERNAL, 0.1, 0.1),
)
LINEAR_SERVER: Rows = (
    ("create_comment", _EXTERNAL, 0.0, 0.2),
    ("create_document", _EXTERNAL, 1.1, 1.1),
    ("create_issue", _EXTERNAL, 0.2, 2.7),
    ("get_document", _READ, 1.1, 1.1),
    ("get_issue", _READ, 1.2, 2.1),
    ("list_comments", _READ, 7.5, 7.5),
    ("list_documents", _READ, 0.1, 0.1),
    ("list_projects", _READ, 0.6, 0.6),
    ("list_teams", _READ, 0.2, 0.2),
    ("search_documentation", _READ, None, None),
    ("update_document", _EXTERNAL, 1.2, 1.2),
    ("update_issue", _EXTERNAL, 3.6, 3.9),
)
MEMORY: Rows = (
    ("add_observations", _LOCAL, None, None),
    ("create_entities", _LOCAL, None, None),
    ("create_relations", _LOCAL, None, None),
    ("delete_entities", _LOCAL, None, None),
    ("delete_observations", _LOCAL, None, None),
    ("delete_relations", _LOCAL, None, None),
    ("open_nodes", _READ, 0.1, 0.1),
    ("read_graph", _READ, 1.1, 7.0),
    ("search_nodes", _READ, 0.1, 0.1),
)
NOTION: Rows = (
    ("API-create-a-comment", _EXTERNAL, 0.9, 0.9),
    ("API-delete-a-block", _EXTERNAL, 0.6, 0.6),
    ("API-get-block-children", _READ, 12.5, 13.9),
    ("API-patch-block-children", _EXTERNAL, 1.3, 1.4),
    ("API-patch-page", _EXTERNAL, 2.1, 2.6),
    ("API-post-database-query", _READ, 5.0, 98.0),
    ("API-post-page", _EXTERNAL, 2.2, 3.3),
    ("API-post-search", _READ, 5.3, 20.0),
    ("API-post_search", _READ, 0.1, 0.1),
    ("API-retrieve-a-database", _READ, 3.0, 3.8),
    ("API-retrieve-a-page", _READ, 1.1, 1.1),
)
PDF_TOOLS: Rows = (
    ("get_pdf_info", _PURE, 0.2, 0.2),
    ("read_multiple_files", _PURE, 0.1, 0.1),
    ("read_pdf_pages", _PURE, 1.1, 23.0),
    ("search_pdf_content", _UNKNOWN, 1.8, 3.4),
    ("search_pdf_next_page", _UNKNOWN, 2.1, 2.5),
)
PLAYWRIGHT_WITH_CHUNK: Rows = (
    ("browser_click", _EXTERNAL, 5.5, 16.5),
    ("browser_close", _EXTERNAL, 0.2, 0.2),
    ("browser_evaluate", _EXTERNAL, 4.2, 8.7),
    ("browser_navigate", _EXTERNAL, 5.6, 6.6),
    ("browser_navigate_back", _EXTERNAL, 13.2, 14.0),
    ("browser_resize", _EXTERNAL, 0.2, 0.2),
    ("browser_snapshot", _EXTERNAL, 5.4, 7.4),
    ("browser_snapshot_navigate_to_first_span", _EXTERNAL, 5.1, 5.2),
    ("browser_snapshot_navigate_to_next_span", _EXTERNAL, 5.0, 5.8),
    ("browser_snapshot_navigate_to_prev_span", _EXTERNAL, 5.0, 5.0),
    ("browser_snapshot_navigate_to_span", _EXTERNAL, 5.1, 5.8),
    ("browser_snapshot_search", _EXTERNAL, 0.8, 4.1),
    ("browser_take_screenshot", _LOCAL, 0.5, 0.5),
    ("browser_type", _EXTERNAL, 0.2, 0.6),
    ("browser_wait_for", _EXTERNAL, 3.7, 6.6),
)
SNOWFLAKE: Rows = (
    ("describe_table", _READ, 0.7, 0.7),
    ("list_databases", _READ, 0.1, 0.1),
    ("list_schemas", _READ, 0.2, 0.2),
    ("list_tables", _READ, 0.6, 0.9),
    ("read_query", _READ, 0.6, 98.0),
    ("write_query", _EXTERNAL, 0.1, 0.1),
)
WOOCOMMERCE: Rows = (
    ("woo_orders_list", _READ, 37.3, 98.0),
    ("woo_orders_update", _EXTERNAL, 4.6, 4.6),
    ("woo_products_batch_update", _EXTERNAL, 10.2, 10.2),
    ("woo_products_categories_create", _EXTERNAL, 0.8, 0.8),
    ("woo_products_categories_list", _READ, 0.8, 1.6),
    ("woo_products_create", _EXTERNAL, 0.1, 3.8),
    ("woo_products_get", _READ, 5.0, 5.0),
    ("woo_products_list", _READ, 67.1, 98.0),
    ("woo_products_update", _EXTERNAL, 3.8, 5.1),
    ("woo_products_variations_list", _READ, 12.1, 12.1),
)
YAHOO_FINANCE: Rows = (
    ("get_historical_stock_prices", _READ, 1.9, 97.2),
    ("get_holder_info", _READ, 1.6, 1.6),
    ("get_recommendations", _READ, 9.2, 10.0),
    ("get_stock_actions", _READ, 4.7, 4.7),
    ("get_stock_price_by_date", _READ, 0.3, 0.4),
)
