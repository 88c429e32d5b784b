/**
 * Escapes values that the hooks write into a pod, because Kubernetes would expand variables in them.
 *
 * In environment values, commands and arguments, Kubernetes replaces `$(NAME)` with a variable and `$$` with `$`.
 * Values in a resource are literal: a `$` in a password stays a `$`, and `$(NAME)` must not read another backend's
 * secret. A user's podTemplateSpec is not escaped: users can rely on Kubernetes' expansion there.
 * Source: Kubernetes core/v1, EnvVar.value, Container.command and args.
 */
import type { ContainerSpec, ContainerEnvVar, PodTemplateSpec } from './pod.ts'

/** Returns a copy of a generated template in which no variables are expanded. */
export function literalTemplate(template: PodTemplateSpec): PodTemplateSpec {
  const { initContainers, containers } = template.spec
  return {
    ...template,
    spec: {
      ...template.spec,
      ...(initContainers && { initContainers: initContainers.map(literalContainer) }),
      containers: containers.map(literalContainer),
    },
  }
}

function literalContainer(container: ContainerSpec): ContainerSpec {
  const { command, args, env } = container
  return {
    ...container,
    ...(command && { command: command.map(escapeVariables) }),
    ...(args && { args: args.map(escapeVariables) }),
    ...(env && { env: env.map(literalVariable) }),
  }
}

function literalVariable(variable: ContainerEnvVar): ContainerEnvVar {
  return variable.value === undefined ? variable : { ...variable, value: escapeVariables(variable.value) }
}

/** Escapes text for the kubelet and for other programs with the same variable syntax. */
export function escapeVariables(text: string): string {
  return text.replaceAll('$', '$$$$')
}
