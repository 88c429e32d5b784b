/** Public API of the authorization server. */
export { type AuthServerEvent } from './model/events.ts'
export { checkAuthServer, type HostedAuthServer, openAuthServer } from './server/hosted-auth-server.ts'
