/** A fixed bearer token. Source: spec document 1 (--remote-auth-bearer-token), spec document 2 (bearerToken). */
import { GatehouseError } from '../../../schemas/index.ts'
import { secretViolations, secretReader, type StrategyModule } from '../config.ts'
import { setBearer } from '../strategy.ts'

export const bearer: StrategyModule = {
  problems({ bearer: block }, parts) {
    if (!block) return ['bearer: is required']
    const token = secretReader(block.token, block.tokenEnv, parts)()
    return [
      ...secretViolations('bearer.token', block.token, block.tokenEnv, parts, true),
      ...(token !== undefined && !/^[\x21-\x7e]+$/.test(token)
        ? ['bearer.token: must be printable ASCII without blanks']
        : []),
    ]
  },
  make({ bearer: block = {} }, parts) {
    const read = secretReader(block.token, block.tokenEnv, parts)
    return {
      type: 'bearer',
      perCaller: false,
      headerNames: ['authorization'],
      apply(request) {
        const token = read()
        if (token === undefined) throw new GatehouseError('BACKEND_AUTH_FAILED')
        setBearer(request.headers, token)
      },
      refused: () => false,
    }
  },
}
