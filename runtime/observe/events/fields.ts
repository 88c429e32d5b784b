/**
 * The fields of each event type. The log uses the same field names: `backend` is always the name of a backend, `err` is
 * an error, and `problems` is a list of readable lines.
 *
 * Events contain no secrets, tokens or session ids.
 */
import type { AttachEventFields } from './attach-fields.ts'
import type { DecisionEventFields } from './decision-fields.ts'
import type { Deviation } from './deviations.ts'

export interface EventFields extends AttachEventFields, DecisionEventFields {
  /** The health of a backend changed. */
  readonly backend_health: {
    readonly backend: string
    readonly before: string
    readonly after: string
    /** Category of the cause (`Cause` in causes.ts); undefined when healthy. */
    readonly reason?: string | undefined
    /** Short explanation from the backend, without credentials. */
    readonly detail?: string | undefined
    /** Exit code of the backend's program. */
    readonly exit_code?: number | undefined
    readonly http_status?: number | undefined
    /** Replaces the category's next step. */
    readonly fix?: string | undefined
    readonly err?: unknown
  }
  readonly backend_circuit: {
    readonly backend: string
    readonly before: string
    readonly after: 'closed' | 'open' | 'half-open'
  }
  /** A client request to a backend failed. */
  readonly backend_call_failed: {
    readonly backend: string
    readonly reason: string
    readonly err?: unknown
  }
  /**
   * The OpenAPI document of a REST service was read. `reason` is set if the document cannot be used; `isServing` is
   * true if the backend has tools.
   */
  readonly openapi_document: {
    readonly backend: string
    readonly isServing: boolean
    readonly reason?: string | undefined
    readonly tools?: number | undefined
    /** Number of selected operations that are not offered. */
    readonly skipped?: number | undefined
    /** The first skipped operations, one line each. */
    readonly skipped_operations?: readonly string[] | undefined
    /** The first filters and overrides that match no operation, one line each. */
    readonly unused_settings?: readonly string[] | undefined
    readonly err?: unknown
  }
  /** Filters and overrides that match no operation of an OpenAPI document; empty when every setting is in use. */
  readonly openapi_settings_unused: { readonly backend: string; readonly settings: readonly string[] }
  /** A response of a REST service could not be compared with the OpenAPI document, and reached the client. */
  readonly openapi_response_unchecked: {
    readonly backend: string
    readonly tool: string
    readonly reason: string
    readonly err?: unknown
  }
  /** A response of a REST service does not match the OpenAPI document. */
  readonly openapi_response_mismatch: {
    readonly backend: string
    readonly tool: string
    readonly reason: string
  }
  readonly backend_excluded: { readonly backend: string; readonly problems: readonly string[] }
  /** An excluded backend is being served again, or was removed from the configuration. */
  readonly backend_included: { readonly backend: string }
  readonly backends_changed: { readonly added: readonly string[]; readonly removed: readonly string[] }
  /** Settings refer to a backend that does not exist; `resolved` when the settings are corrected. */
  readonly backend_name_unknown: { readonly problem: string; readonly resolved: boolean }
  /**
   * Protocol deviations of a backend that remains in use; empty when the deviations have ended. New deviations are
   * added as they occur.
   */
  readonly backend_deviates: { readonly backend: string; readonly deviations: readonly Deviation[] }
  /** The protocol era of the backend changed. */
  readonly backend_era: { readonly backend: string; readonly era: string }
  /**
   * A message from a backend has no request id and could belong to several callers. The message is dropped; if it is a
   * request, the backend gets an error.
   */
  readonly backend_message_unassigned: { readonly backend: string; readonly method: string }
  /** Reading a backend's lists failed. `stale_since` is set while the previous lists stay in use. */
  readonly lists_failed: {
    readonly backend: string
    /** Time at which the lists became unreadable, as an RFC 3339 timestamp. */
    readonly stale_since?: string | undefined
    /** Short explanation from the backend, without credentials. */
    readonly detail?: string | undefined
    readonly err?: unknown
  }
  /** A backend's lists can be read again. */
  readonly lists_recovered: { readonly backend: string }
  /**
   * One of a backend's lists failed, is incomplete or is declared incorrectly, while its other lists remain in use;
   * `resolved` when the problem is over. `list` is a method such as `prompts/list`.
   */
  readonly list_problem: {
    readonly backend: string
    readonly list: string
    readonly problem: string
    readonly fix: string
    readonly resolved: boolean
    /** Short explanation from the backend, without credentials. */
    readonly detail?: string | undefined
    readonly err?: unknown
  }
  /**
   * A backend announces changes so often that processing them is throttled; `resolved` when the rate is normal
   * again. `notification` is `list_changed` or `resources/updated`.
   */
  readonly changes_paced: {
    readonly backend: string
    readonly notification: string
    readonly resolved: boolean
  }
  /** A backend's lists changed. */
  readonly lists_changed: { readonly backend: string }
  /** The current lists contain malformed items. Both counts are 0 when no items are malformed. */
  readonly items_malformed: {
    readonly backend: string
    readonly repaired: number
    readonly left_out: number
    readonly examples: readonly string[]
  }
  /** Guardrails remove items from a backend's lists. The count is 0 when the lists are complete again. */
  readonly items_withheld: {
    readonly backend: string
    readonly left_out: number
    readonly examples: readonly string[]
  }
  /** An item cannot be offered because of a name conflict; `resolved` when the conflict is over. */
  readonly name_conflict: {
    readonly kind: string
    readonly item: string
    readonly problem: string
    readonly fix: string
    readonly resolved: boolean
  }
  /** Origins or permissions of a page were removed. `affected` contains the names of the affected lists. */
  readonly page_narrowed: {
    readonly backend: string
    readonly page: string
    readonly affected: readonly string[]
  }
  /** A skill is not offered. `skill` is empty if the problem concerns the backend's whole list. */
  readonly skill_refused: { readonly backend: string; readonly skill: string; readonly reason: string }
  /** Several skills have the same name. `skills` contains their addresses. */
  readonly skill_names_equal: { readonly name: string; readonly skills: readonly string[] }
  /** A backend's list of skills could not be read. */
  readonly skills_unread: { readonly backend: string; readonly err: unknown }
  /** Clients see a shorter tool name. */
  readonly tool_alias: { readonly item: string; readonly alias: string }
  /**
   * A backend differs from its lock. All counts are 0 when the backend matches its lock again, or when `compared` is
   * false because the backend no longer has a usable lock. `quiet`: pinning only observes.
   */
  readonly tools_drifted: {
    readonly backend: string
    readonly compared: boolean
    readonly changed: number
    readonly new: number
    readonly removed: number
    readonly quiet: boolean
    readonly examples: readonly string[]
  }
  /**
   * A page that a client has read differs from the lock of its backend, or no longer differs. All counts are 0 when no
   * known page differs, or when `compared` is false because the lock no longer contains pages.
   */
  readonly pages_drifted: Omit<EventFields['tools_drifted'], 'removed'>
  /**
   * A backend's lock cannot be used. `failure` is absent when the lock is active again or no longer exists. If
   * `missing` is true, the backend has no lock and therefore offers nothing.
   */
  readonly tool_lock: {
    readonly backend: string
    readonly failure: string | undefined
    readonly in_force: boolean
    readonly missing: boolean
  }
  /** The first definitions that a backend offered were approved. */
  readonly tool_lock_written: {
    readonly backend: string
    readonly tools: number
    readonly prompts: number
    readonly templates: number
  }
  /** A call to an item that does not match the lock was rejected. */
  readonly pin_refused: {
    readonly backend: string
    readonly item: string
    readonly reason: string
    readonly method: string
  }
  /** A client request failed because of the gateway or a backend. */
  readonly request_failed: { readonly reason: string; readonly err?: unknown }
  /** Requests are being rejected because of overload, or the overload has ended. */
  readonly server_overloaded: {
    readonly refusing: boolean /** Number of requests since the overload began. */
    readonly refused: number
  }
  /** A client's access token was rejected. */
  readonly token_refused: { readonly reason: string }
  /** Access tokens cannot be validated, because the keys or the introspection endpoint are unreachable. */
  readonly token_check_failed: { readonly reason: string; readonly err?: unknown }
  readonly token_check_recovered: Readonly<Record<string, never>>
  /** A change to a session was not stored for other replicas. */
  readonly session_unsaved: { readonly err?: unknown }
  /** Console role policies fail. If neither `failing` nor `unusable` is set, the current policies do not fail. */
  readonly console_policies: {
    /** Ids of all policies that have failed. */
    readonly failing: readonly string[]
    /** No policy can be used, so no user has a role. */
    readonly unusable?: boolean | undefined
    /** The policy that has just failed. */
    readonly policy?: string | undefined
    readonly effect?: string | undefined
    readonly reason?: string | undefined
    readonly err?: unknown
  }
  /** A user has no console role, because policies cannot represent the user. */
  readonly console_user_untold: { readonly reason: string; readonly user?: string | undefined }
  readonly config_reloaded: { readonly backends: number }
  readonly config_refused: { readonly err?: unknown }
  /** Changed settings that require a restart; empty when there are none. */
  readonly restart_needed: { readonly sections: readonly string[] }
  /** An event of the embedded authorization server. */
  readonly authorization_server: {
    readonly action: string
    readonly outcome: string
    readonly upstream?: string | undefined
    readonly reason?: string | undefined
  }
  /** A credential for a backend could not be obtained. */
  readonly token_failed: {
    readonly backend?: string | undefined
    readonly strategy: string
    readonly reason: string
    readonly err?: unknown
  }
  readonly token_obtained: { readonly strategy: string }
  /** A user action in the console; `user` is the subject. */
  readonly console_action: {
    readonly operation: string
    readonly outcome: string
    readonly user?: string | undefined
    readonly target?: string | undefined
    /** Digest of the approved definition. */
    readonly digest?: string | undefined
  }
  readonly session_storage: { readonly up: boolean; readonly err?: unknown }
  readonly status_report: { readonly ok: boolean; readonly config_map: string; readonly err?: unknown }
  /** Audit log lines were lost. */
  readonly audit_lost: { readonly lines: number; readonly err?: unknown }
  /** Audit log lines are written without loss again. */
  readonly audit_recovered: Readonly<Record<string, never>>
  /**
   * A certificate trusted for a backend expires soon or has expired. `ends` is absent when no certificate expires soon.
   */
  readonly certificate_expiring: {
    readonly backend: string
    /** RFC 3339 timestamp. */
    readonly ends?: string | undefined
    readonly expired?: boolean | undefined
  }
  /** The server's certificate expires soon or has expired. `ends` is absent when the certificate has been renewed. */
  readonly serving_certificate_expiring: {
    /** RFC 3339 timestamp. */
    readonly ends?: string | undefined
    readonly expired?: boolean | undefined
  }
  readonly serving_certificate_reloaded: {
    /** RFC 3339 timestamp. */
    readonly ends: string
  }
  /**
   * The changed files contain no usable certificate and key. `reason` is absent when the files are usable again.
   * Contains file names, never content.
   */
  readonly serving_certificate_refused: { readonly reason?: string | undefined }
}

export type EventType = keyof EventFields
