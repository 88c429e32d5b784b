/**
 * MCPServer: checks of the object alone that need code.
 */
import type { MCPServer, Problem } from '../../../schemas/index.ts'
import { authzProblems } from '../../admission/authz.ts'
import { podTemplateProblems } from '../../children/pod-template.ts'

export function serverProblems({ spec }: MCPServer): Problem[] {
  return [
    ...podTemplateProblems(spec.podTemplateSpec),
    ...authzProblems(spec.authzConfig, 'spec.authzConfig'),
    ...environmentProblems(spec),
  ]
}

/** Two sources for one variable: which one wins would be a surprise. */
function environmentProblems({ env = [], secrets = [] }: MCPServer['spec']): Problem[] {
  const literal = new Set(env.map(({ name }) => name))
  const problems: Problem[] = []
  const seen = new Set<string>()
  for (const [index, { key, targetEnvName }] of secrets.entries()) {
    const name = targetEnvName ?? key
    const path = `spec.secrets[${index}]${targetEnvName === undefined ? '.key' : '.targetEnvName'}`
    if (!/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name)) {
      problems.push({ path, message: 'is not the name of an environment variable; set targetEnvName' })
    }
    if (literal.has(name) || seen.has(name))
      problems.push({ path, message: `the variable ${name} is set twice` })
    seen.add(name)
  }
  return problems
}
