/** Middlewares that stand between the client edges and the core. */
export { authorize, type AuthorizeOptions, type Decision } from './authorize.ts'
export { rateLimit } from './rate-limit.ts'
