/**
 * The protocol between a tunnel client and a `gatehouse relay`.
 *
 * The client keeps a few idle WebSockets open at the relay. When the relay needs a connection, it uses one of these
 * WebSockets for an HTTP/1.1 connection to the client's proxy, as plain bytes. The client then opens another idle
 * WebSocket. Nothing is multiplexed, so a slow request never delays another request.
 *
 *   GET /.gatehouse/tunnel?hostname=<name>&session=<id>   Authorization: Bearer <token>
 *   101, Gatehouse-Public-Url: <url>                      401 wrong token, 409 name taken by another session
 */
export const tunnelPath = '/.gatehouse/tunnel'
export const publicUrlHeader = 'gatehouse-public-url'
export const subprotocol = 'gatehouse-tunnel.v1'

/** A valid DNS label. */
export const hostnamePattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Interval between the relay's pings on idle connections. A client considers a connection dead after twice this
 * interval without data.
 */
export const pingEveryMs = 20_000
