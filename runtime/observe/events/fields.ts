/**
 * What each type of event says. The names of members are the names of fields in the log: `backend` always names a
 * backend, `err` always carries an error, `problems` always lists readable lines.
 *
 * No event carries a secret, a token or a session id.
 */
import type { AttachEventFields } from './attach-fields.ts'
import type { Deviation } from './deviations.ts'

export interface EventFields extends AttachEventFields {
  /** The health of a backend changed. */
  readonly backend_health: {
    readonly backend: string
    readonly before: string
    readonly after: string
    /** Why, as a category of words.ts; undefined when it is healthy. */
    readonly reason?: string | undefined
    /** The backend's own explanation: short, without credentials. */
    readonly detail?: string | undefined
    readonly err?: unknown
  }
  readonly backend_circuit: {
    readonly backend: string
    readonly before: string
    readonly after: 'closed' | 'open' | 'half-open'
  }
  /** A request of a client to a backend failed. */
  readonly backend_call_failed: {
    readonly backend: string
    readonly reason: string
    readonly err?: unknown
  }
  readonly backend_excluded: { readonly backend: string; readonly problems: readonly string[] }
  /** A backend that was excluded is served, or is not in the configuration any more. */
  readonly backend_included: { readonly backend: string }
  readonly backends_changed: { readonly added: readonly string[]; readonly removed: readonly string[] }
  /** Settings name a backend that does not exist; `resolved` when they do not any more. */
  readonly backend_name_unknown: { readonly problem: string; readonly resolved: boolean }
  /**
   * Protocol deviations of a backend that remains in use; empty when it no longer deviates. New deviations are added
   * as they occur.
   */
  readonly backend_deviates: { readonly backend: string; readonly deviations: readonly Deviation[] }
  /** The backend speaks another protocol era than before. */
  readonly backend_era: { readonly backend: string; readonly era: string }
  /**
   * A message of a backend names no request and may belong to several callers. It is dropped; a request gets an
   * error.
   */
  readonly backend_message_unassigned: { readonly backend: string; readonly method: string }
  /** The lists of a backend could not be read. `stale_since` is set while the last ones stay in use. */
  readonly lists_failed: {
    readonly backend: string
    /** RFC 3339 time. */
    readonly stale_since?: string | undefined
    /** The backend's own explanation: short, without credentials. */
    readonly detail?: string | undefined
    readonly err?: unknown
  }
  /** The lists of a backend can be read again. */
  readonly lists_recovered: { readonly backend: string }
  /**
   * A list of a backend failed, is incomplete or is declared wrongly, while its other lists remain in use; `resolved`
   * when the problem is over. `list` is a method such as `prompts/list`.
   */
  readonly list_problem: {
    readonly backend: string
    readonly list: string
    readonly problem: string
    readonly fix: string
    readonly resolved: boolean
    /** The backend's own explanation: short, without credentials. */
    readonly detail?: string | undefined
    readonly err?: unknown
  }
  /**
   * A backend announces changes so often that their processing is throttled; `resolved` when the rate is normal
   * again. `notification` is `list_changed` or `resources/updated`.
   */
  readonly changes_paced: {
    readonly backend: string
    readonly notification: string
    readonly resolved: boolean
  }
  /** A backend offers something else than before. */
  readonly lists_changed: { readonly backend: string }
  /** Items of the lists that were read just now are malformed; both counts 0: none is any more. */
  readonly items_malformed: {
    readonly backend: string
    readonly repaired: number
    readonly left_out: number
    readonly examples: readonly string[]
  }
  /** Guardrails keep what a backend lists from clients; 0: nothing any more. */
  readonly items_withheld: {
    readonly backend: string
    readonly left_out: number
    readonly examples: readonly string[]
  }
  /** A name cannot be offered as it stands; `resolved` when it can again. */
  readonly name_conflict: {
    readonly kind: string
    readonly item: string
    readonly problem: string
    readonly fix: string
    readonly resolved: boolean
  }
  /** Clients are told a shorter name of a tool. */
  readonly tool_alias: { readonly item: string; readonly alias: string }
  /**
   * What a backend offers is not what its lock says; all counts 0: it is, or `compared` is false and there is no usable lock
   * any more. `quiet`: pinning only observes it.
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
   * The lock of a backend cannot be used, or (without `failure`) is in force again, or there is none any more. `missing`: there
   * is none, and nothing of the backend is offered for that.
   */
  readonly tool_lock: {
    readonly backend: string
    readonly failure: string | undefined
    readonly in_force: boolean
    readonly missing: boolean
  }
  /** What a backend offered when it was first seen counts as approved. */
  readonly tool_lock_written: {
    readonly backend: string
    readonly tools: number
    readonly prompts: number
    readonly templates: number
  }
  /** A call of something that is not as it was approved was refused. */
  readonly pin_refused: {
    readonly backend: string
    readonly item: string
    readonly reason: string
    readonly method: string
  }
  /** A request of a client failed for a reason of ours or of a backend. */
  readonly request_failed: { readonly reason: string; readonly err?: unknown }
  /** More requests arrive than this process can take, so that some are refused; or none was for a while. */
  readonly server_overloaded: {
    readonly refusing: boolean /** Requests, since it began. */
    readonly refused: number
  }
  /** The access token of a client was refused. */
  readonly token_refused: { readonly reason: string }
  /** Access tokens of clients cannot be checked: the keys or the introspection endpoint cannot be reached. */
  readonly token_check_failed: { readonly reason: string; readonly err?: unknown }
  readonly token_check_recovered: Readonly<Record<string, never>>
  /** What changed in a session was not stored for other replicas. */
  readonly session_unsaved: { readonly err?: unknown }
  /** Policies refused a call. */
  readonly call_denied: {
    readonly method: string
    readonly item?: string | undefined
    /** Ids of the policies that refused it; absent when none permits it. */
    readonly policies?: readonly string[] | undefined
    /** Attributes that a permit reads and the request does not have. */
    readonly missing?: readonly string[] | undefined
  }
  /** A rate limit refused a call. */
  readonly call_limited: { readonly scope: string; readonly operation_type: string }
  /** The store of the rate limits cannot be asked any more, or can be again. */
  readonly limits_store: {
    readonly up: boolean
    /** What becomes of calls meanwhile. */
    readonly calls?: 'allowed' | 'refused' | undefined
    readonly err?: unknown
  }
  /** A call over a quota. */
  readonly quota_exceeded: {
    readonly quota: string
    readonly per: string
    readonly unit: string
    /** False: it went on. */
    readonly enforced: boolean
  }
  /** How full the fullest budget of a quota is: `near` from 80 % on. */
  readonly quota_level: {
    readonly quota: string
    readonly per: string
    readonly after: 'below' | 'near' | 'exhausted'
    /** End of the period, RFC 3339 time. */
    readonly until: string
    /** Calls over it are refused. */
    readonly blocks: boolean
  }
  /** The store of the quotas cannot be asked any more, or can be again. */
  readonly quota_store: { readonly up: boolean; readonly err?: unknown }
  /** The memory has no space for budgets of further callers. */
  readonly quota_memory_full: Readonly<Record<string, never>>
  /** Quotas, costs, guardrails or webhooks name a tool that no backend offers; `resolved` when they do not any more. */
  readonly tool_unmatched: { readonly problem: string; readonly resolved: boolean }
  /** A backend reports a cost that cannot be counted. */
  readonly cost_unreadable: { readonly backend: string }
  /** The external decision point gave no decision about one question, which is refused. */
  readonly decision_failed: { readonly reason: string; readonly err?: unknown }
  /** It gave none several times in a row, or gives decisions again. */
  readonly decision_point: {
    readonly up: boolean
    readonly reason?: string | undefined
    /** It is not asked any more. */
    readonly replaced?: boolean | undefined
  }
  /** A webhook refused a call, or withheld its result; or would have, in mode audit. */
  readonly webhook_denied: {
    readonly webhook: string
    readonly phase: string
    readonly method: string
    /** What it says to operators. */
    readonly reason?: string | undefined
    readonly enforced: boolean
  }
  /** A webhook gave no valid response. */
  readonly webhook_failed: {
    readonly webhook: string
    readonly phase: string
    readonly reason: string
    /** What became of the call. */
    readonly refused: boolean
    readonly err?: unknown
  }
  /** It gave none several times in a row, or gives responses again. */
  readonly webhook_state: {
    readonly webhook: string
    readonly up: boolean
    /** Calls go on without it. */
    readonly ignored: boolean
    readonly reason?: string | undefined
    /** It is not asked any more. */
    readonly replaced?: boolean | undefined
  }
  /** A guardrail found something in arguments or in a result. */
  readonly guardrail_matched: {
    readonly rule: string
    readonly direction: string
    /** What became of it: masked, refused, observed, marked, stripped, escaped. */
    readonly outcome: string
    readonly backend: string
    readonly method: string
    readonly item?: string | undefined
    /** Matches. */
    readonly count: number
  }
  /** Guardrails could not look through something, which is withheld. */
  readonly guardrail_failed: {
    readonly direction: string
    readonly backend: string
    readonly method: string
    readonly item?: string | undefined
    readonly err?: unknown
  }
  readonly policy_engine_failed: { readonly err?: unknown }
  /** Policies that give the roles of the console fail; without `failing` and `unusable`: those in force do not any more. */
  readonly console_policies: {
    /** Ids of all that failed so far. */
    readonly failing: readonly string[]
    /** None can be used: nobody has a role. */
    readonly unusable?: boolean | undefined
    /** The one that failed now. */
    readonly policy?: string | undefined
    readonly effect?: string | undefined
    readonly reason?: string | undefined
    readonly err?: unknown
  }
  /** Somebody has no role in the console, because the policies cannot be told who that is. */
  readonly console_user_untold: { readonly reason: string; readonly user?: string | undefined }
  readonly config_reloaded: { readonly backends: number }
  readonly config_refused: { readonly err?: unknown }
  /** Changed settings that wait for a restart; empty: none does. */
  readonly restart_needed: { readonly sections: readonly string[] }
  /** Something happened at the embedded authorization server. */
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
  /** Somebody did something in the console; `user` is their subject. */
  readonly console_action: {
    readonly operation: string
    readonly outcome: string
    readonly user?: string | undefined
    readonly target?: string | undefined
    /** Of the definition that was approved. */
    readonly digest?: string | undefined
  }
  readonly session_storage: { readonly up: boolean; readonly err?: unknown }
  readonly status_report: { readonly ok: boolean; readonly config_map: string; readonly err?: unknown }
  /** Lines of the audit log were lost. */
  readonly audit_lost: { readonly lines: number; readonly err?: unknown }
  /** Lines are written again, and none was lost for a while. */
  readonly audit_recovered: Readonly<Record<string, never>>
  /** A certificate that the connections to a backend rest on ends soon or has ended; without `ends`: none does any more. */
  readonly certificate_expiring: {
    readonly backend: string
    /** RFC 3339 time. */
    readonly ends?: string | undefined
    readonly expired?: boolean | undefined
  }
  /** The certificate that this server shows ends soon or has ended; without `ends`: not any more. */
  readonly serving_certificate_expiring: {
    /** RFC 3339 time. */
    readonly ends?: string | undefined
    readonly expired?: boolean | undefined
  }
  readonly serving_certificate_reloaded: {
    /** RFC 3339 time. */
    readonly ends: string
  }
  /**
   * Files that have changed hold no certificate and key that can be served; without `reason`: they do again. Names files, never
   * their content.
   */
  readonly serving_certificate_refused: { readonly reason?: string | undefined }
}

export type EventType = keyof EventFields
