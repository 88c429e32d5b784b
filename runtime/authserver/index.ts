/** Public API of the authorization server. */
export { type AuthServerEvent } from './events.ts'
export { checkAuthServer, type HostedAuthServer, openAuthServer } from './host.ts'
