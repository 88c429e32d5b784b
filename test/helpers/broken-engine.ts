/** Breaks the policy engine: the current instance fails, and no new one can be loaded until the engine is restored. */
import { registerHooks } from 'node:module'
import { callEngine } from '../../schemas/cedar/engine.ts'

export function breakEngine(): { readonly repair: () => void } {
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      if (specifier === '#cedar') throw new Error('the package is gone')
      return next(specifier, context)
    },
  })
  trapEngine()
  return { repair: () => hooks.deregister() }
}

/** Exhausts the engine's stack. The next call gets a new engine. */
export function trapEngine(): void {
  const monster = `permit(principal, action, resource) when { ${'('.repeat(5000)}true${')'.repeat(5000)} };`
  try {
    callEngine((engine) => engine.checkParsePolicySet({ staticPolicies: monster }))
  } catch {
    return
  }
  throw new Error('the engine has read five thousand parentheses')
}
