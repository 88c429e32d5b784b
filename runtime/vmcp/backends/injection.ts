import { addsCredentialAgain, type AuthServerFacts } from '../../incoming/index.ts'
import type { StrategyConfig } from '../../outgoing/index.ts'

/**
 * Returns the reason why a strategy conflicts with the embedded authorization server. The server removes upstream
 * tokens from requests. `field` is the strategy's path in the configuration.
 */
export function injectionViolation(
  field: string,
  { type }: Pick<StrategyConfig, 'type'>,
  server: AuthServerFacts | undefined,
): string | undefined {
  return addsCredentialAgain(type, server)
    ? `${field}: ${type} cannot be combined with disableUpstreamTokenInjection, because this type adds a credential again`
    : undefined
}
