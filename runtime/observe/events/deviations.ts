/** Text that describes, in `/status`, the protocol deviations that do not prevent Gatehouse from using a backend. */
const texts = {
  byte_order_mark: 'messages begin with a byte order mark',
  content_type: 'the content type of responses does not match their bodies',
  event_unreadable: 'the event stream contains events that cannot be read as messages',
  id_type: 'responses return the request id with a different JSON type',
  null_member: 'messages contain null members, or an empty list instead of an object',
  ping_unanswered: 'the response to ping is not a JSON-RPC response',
  response_in_list: 'responses are wrapped in a list',
  session_id_unusable:
    'the session id contains characters that are invalid in a header, so Gatehouse uses no session',
  stream_not_kept: 'the backend closes its event stream as soon as the stream is opened',
  version_missing: 'messages have no jsonrpc member',
} as const

export type Deviation = keyof typeof texts

export function deviationText(deviation: Deviation): string {
  return texts[deviation]
}
