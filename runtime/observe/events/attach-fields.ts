/** What events say of a stdio server that is attached to. */
export type AttachmentEnd =
  | 'stream_ended'
  | 'server_restarted'
  | 'server_gone'
  | 'server_changed'
  | 'failed'
  | 'another_proxy'
  | 'proxy_ended'

export interface AttachEventFields {
  /** How a proxy is attached to the container of a stdio server. */
  readonly attach_state: {
    readonly attached: boolean
    /** CamelCase, as the condition Attached has it. */
    readonly reason: string
    /** With the next step, where one is known. */
    readonly why: string
    /** The server was attached to before. */
    readonly again?: boolean | undefined
    /** Of the server's container. */
    readonly restarts?: number | undefined
    /** Why an attachment ended just now: one of few words. */
    readonly ended?: AttachmentEnd | undefined
  }
  /** A run of that server was initialized; `again`: it was started again since. */
  readonly server_initialized: { readonly again: boolean; readonly restarts: number }
  /** Requests that were with that server when it was lost. */
  readonly server_requests_lost: { readonly count: number; readonly why: string }
  /** A line of that server was over the limit, and dropped. */
  readonly server_line_too_long: { readonly limit_bytes: number }
}
