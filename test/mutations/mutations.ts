/**
 * The table of mutations. Each row changes one default, bound or rule of the specification and names the test files that
 * must fail with it.
 */
import { authorizationServer } from './authorization-server.ts'
import { externalAuth } from './external-auth.ts'
import type { Mutation } from './mutation.ts'
import { proxyCommand } from './proxy-command.ts'
import { virtualServerRuntime } from './virtual-server-runtime.ts'
import { virtualServer } from './virtual-server.ts'

export const mutations: readonly Mutation[] = [
  ...proxyCommand,
  ...externalAuth,
  ...authorizationServer,
  ...virtualServer,
  ...virtualServerRuntime,
]
