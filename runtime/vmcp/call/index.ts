/** Middlewares that stand between the client edges and the core. */
export { type AliasParts, resolveAliases, showAliases } from './aliases.ts'
export { authorize, type AuthorizeOptions } from './authorize.ts'
export { rateLimit } from './rate-limit.ts'
export { askedStep, askWebhooks } from './webhooks.ts'
