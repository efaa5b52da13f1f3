import type { Operation } from '../core/resource/operation.ts';
import { deliveryLogOperations } from './deliveries/delivery.ts';
import { pingOperation } from './deliveries/ping.ts';
import { replayOperations } from './deliveries/replay.ts';
import { createEndpointOperation } from './endpoints/create_endpoint.ts';
import {
  deleteEndpointOperation,
  disableEndpointOperation,
  enableEndpointOperation,
  readEndpointOperations,
  updateEndpointOperation,
} from './endpoints/endpoint.ts';
import { rotateSecretOperation } from './endpoints/secret.ts';
import { eventOperations } from './events/event_log.ts';
import type { EventPolicy } from './events/policy.ts';

/** The operations of a product's webhooks, at its path and under its names: the event log, endpoints, and deliveries. */
export const webhooksOf = (policy: EventPolicy): Operation[] =>
  [
    ...(policy.lists_all ? eventOperations(policy) : []),
    ...readEndpointOperations(policy),
    createEndpointOperation(policy),
    updateEndpointOperation(policy),
    enableEndpointOperation(policy),
    disableEndpointOperation(policy),
    rotateSecretOperation(policy),
    deleteEndpointOperation(policy),
    ...deliveryLogOperations(policy),
    ...replayOperations(policy),
    pingOperation(policy),
  ].map((operation) => ofProduct(operation, policy));

const ofProduct = (operation: Operation, { path, namespace }: EventPolicy): Operation => ({
  ...operation,
  name: namespace + operation.name,
  tag: namespace + operation.tag,
  scope: namespace + operation.scope,
  path: operation.path.replace(/^\/v1/, path),
});
