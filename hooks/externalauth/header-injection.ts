/** Type `headerInjection`: one header, whose value comes from a Secret. */
import { type ExternalAuthModule, present } from './module.ts'

const forbidden =
  /^(host|connection|content-length|content-type|transfer-encoding|te|trailer|upgrade|mcp-session-id)$/i

export const headerInjection: ExternalAuthModule = {
  validate({ headerInjection: config }) {
    if (!config || !forbidden.test(config.headerName)) return []
    return [
      { path: 'spec.headerInjection.headerName', message: `the header ${config.headerName} cannot be set` },
    ]
  },
  secrets: ({ headerInjection: config }) => present([config?.valueSecretRef]),
  toRuntime({ headerInjection: config }, { needs, variable }) {
    if (!config) return { value: undefined }
    const headerValueEnv = needs.secretEnv(
      `GATEHOUSE_HEADER_INJECTION_VALUE_${variable}`,
      config.valueSecretRef,
    )
    return {
      value: { type: 'header_injection', headerInjection: { headerName: config.headerName, headerValueEnv } },
    }
  },
}
