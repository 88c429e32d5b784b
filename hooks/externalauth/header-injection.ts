/** Type `headerInjection`: one header, whose value comes from a Secret. */
import { type ExternalAuthModule, definedItems } from './module.ts'

export const headerInjection: ExternalAuthModule = {
  validate: () => [],
  secrets: ({ headerInjection: config }) => definedItems([config?.valueSecretRef]),
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
