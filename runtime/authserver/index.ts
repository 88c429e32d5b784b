/** Public API of the authorization server. */
export { type AuthServerEvent, type AuthServerEventType, eventTypes } from './events.ts'
export { checkAuthServer, type HostedAuthServer, type HostParts, openAuthServer } from './host.ts'
export { type AuthServer, type AuthServerParts, makeAuthServer } from './server.ts'
export { openAuthServerStore } from './storage/open.ts'
export type { UpstreamTokenSource } from './upstream/token-store.ts'
