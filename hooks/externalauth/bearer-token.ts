/**
 * Type `bearerToken`: a static token in the Authorization header.
 *
 * The runtime's strategy wants the whole header value in one variable. Kubernetes composes it: a variable may refer to
 * another one of the same container that stands before it.
 */
import { type ExternalAuthModule, present } from './module.ts'

export const bearerToken: ExternalAuthModule = {
  validate: () => [],
  secrets: ({ bearerToken: config }) => present([config?.tokenSecretRef]),
  toRuntime({ bearerToken: config }, { needs, variable }) {
    if (!config) return { value: undefined }
    const token = needs.secretEnv(`GATEHOUSE_BEARER_TOKEN_${variable}`, config.tokenSecretRef)
    const headerValueEnv = `GATEHOUSE_HEADER_INJECTION_VALUE_${variable}`
    needs.literal(headerValueEnv, `Bearer $(${token})`)
    return {
      value: { type: 'header_injection', headerInjection: { headerName: 'Authorization', headerValueEnv } },
    }
  },
}
