/**
 * What a tunnel client and a `gatehouse relay` agree on.
 *
 * The client keeps a few idle WebSockets open at the relay. Each carries, once the relay needs it, one HTTP/1.1
 * connection to the client's proxy as plain bytes; the client opens another idle one in its place. There is nothing to
 * multiplex, so one slow request never holds up another.
 *
 *   GET /.gatehouse/tunnel?hostname=<name>&session=<id>   Authorization: Bearer <token>
 *   101, Gatehouse-Public-Url: <url>                      401 wrong token, 409 name taken by another session
 */
export const tunnelPath = '/.gatehouse/tunnel'
export const publicUrlHeader = 'gatehouse-public-url'
export const subprotocol = 'gatehouse-tunnel.v1'

/** A name that can be a DNS label. */
export const hostnamePattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** The relay pings idle connections this often; a client takes twice this silence for a dead one. */
export const pingEveryMs = 20_000
