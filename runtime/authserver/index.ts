/** The door of the authorization server. */
export { type AuthServerEvent, type AuthServerEventType, eventTypes } from './events.ts'
export { type AuthServer, type AuthServerParts, makeAuthServer } from './server.ts'
export type { UpstreamToken, UpstreamTokenSource } from './upstream/vault.ts'
