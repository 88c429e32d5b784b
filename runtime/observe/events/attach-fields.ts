/** The fields of events about an attached stdio server. */
export type AttachmentEnd =
  | 'stream_ended'
  | 'server_restarted'
  | 'server_gone'
  | 'server_changed'
  | 'failed'
  | 'another_proxy'
  | 'proxy_ended'

export interface AttachEventFields {
  /** State of a proxy's attachment to the container of a stdio server. */
  readonly attach_state: {
    readonly attached: boolean
    /** CamelCase reason for the Attached condition. */
    readonly reason: string
    /** Explanation, followed by the next step if the proxy can suggest one. */
    readonly why: string
    /** True if the server was attached before. */
    readonly again?: boolean | undefined
    /** Number of times that the server's container has restarted. */
    readonly restarts?: number | undefined
    /** One of a fixed set of reasons why the attachment ended. */
    readonly ended?: AttachmentEnd | undefined
  }
  /** The server was initialized; `again` is true after a restart. */
  readonly server_initialized: { readonly again: boolean; readonly restarts: number }
  /** Requests in progress when the connection to the server was lost. */
  readonly server_requests_lost: { readonly count: number; readonly why: string }
  /** A line from the server exceeded the limit and was dropped. */
  readonly server_line_too_long: { readonly limit_bytes: number }
}
