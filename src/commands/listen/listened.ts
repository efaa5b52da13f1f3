import { program } from '../../program/index.ts';
import { recruitment } from '../../recruitment/index.ts';
import type { EventPolicy } from '../../webhooks/events/policy.ts';
import { type Chosen, choose } from '../chosen.ts';
import type { Opened } from '../command.ts';

/** The subject to listen to: a program, or the recruitment service of an organization. */
export interface Listened extends Chosen {
  policy: EventPolicy;
}

export const chooseProgram = async (opened: Opened, asked: string | undefined): Promise<Listened> => ({
  ...(await choose(opened, 'program', asked, { or_demo: true })),
  policy: program.events,
});

export const chooseOrganization = async (opened: Opened, asked: string | undefined): Promise<Listened> => ({
  ...(await choose(opened, 'organization', asked, { or_demo: true })),
  policy: recruitment.events,
});
