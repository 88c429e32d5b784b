/** The door of the virtual server. */
export type { Clock } from './clock.ts'
export type { Ask, AskReply, Client, ClientAbilities, Middleware, Operation, Outcome } from './operation.ts'
export { checkAll, checkStart, startWarnings } from './start-check.ts'
export { type StartOptions, startVmcp, type VmcpServer } from './server.ts'
