/** The ways in which a backend can deviate from the protocol and still be used, in words for `/status`. */
const texts = {
  byte_order_mark: 'messages begin with a byte order mark',
  content_type: 'the content type of responses does not match their bodies',
  event_unreadable: 'its event stream contains events that are no messages',
  id_type: 'responses repeat the id of the request in another type',
  null_member: 'messages have members that are null, or an empty list instead of an object',
  ping_unanswered: 'ping is not answered with a JSON-RPC response',
  response_in_list: 'responses are wrapped in a list',
  session_id_unusable: 'its session id has characters that no header can carry, so that no session is used',
  stream_not_kept: 'it closes its event stream as soon as it is opened',
  version_missing: 'messages have no jsonrpc member',
} as const

export type Deviation = keyof typeof texts

export function deviationText(deviation: Deviation): string {
  return texts[deviation]
}
